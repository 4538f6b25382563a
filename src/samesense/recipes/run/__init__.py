"""The run of a training, the same for every method: its folder, folds, training and evaluation, and the outcome."""
