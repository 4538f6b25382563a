"""Training: examples, an encoder and a loss in; a trained encoder out."""
