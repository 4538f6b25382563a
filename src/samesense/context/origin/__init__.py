"""Similarity of two sentences by the contexts that both fit."""
