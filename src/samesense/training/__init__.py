"""Training: examples, an encoder and an objective in; a trained encoder out."""
