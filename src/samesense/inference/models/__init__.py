"""From the name of a model to the model."""
