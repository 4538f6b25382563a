"""Encoders in plain NumPy: BERT and similar transformers, or static vectors, opened in milliseconds without torch."""
