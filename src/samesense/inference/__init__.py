"""Inference: a saved model in, answers out."""
