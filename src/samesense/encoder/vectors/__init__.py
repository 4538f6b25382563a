"""Vectors without a model: stored, in fewer bytes, looked up."""
