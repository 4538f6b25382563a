"""Vectors without a model: stored, quantized, looked up."""
