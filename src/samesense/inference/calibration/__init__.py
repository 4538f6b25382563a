"""What a score means: a value on the scale of labels, a probability, yes or no."""
