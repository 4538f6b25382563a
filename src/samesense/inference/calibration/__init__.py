"""Calibration of scores: to the scale of labels, to probabilities, and to yes and no."""
