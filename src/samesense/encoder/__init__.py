"""Encoders of texts: building, pooling, saving and running them."""
