"""Plain encoders by NumPy: a BERT or its kin, or static vectors, opened in milliseconds and without torch."""
