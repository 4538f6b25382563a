"""The outcome of a run: comparison of the trained model with its start, merging, and the learning curve."""
