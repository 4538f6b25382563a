"""Tells the sentence that stood in a context from others: its model, training and scores."""
