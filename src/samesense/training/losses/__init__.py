"""Losses as modules that sentence-transformers trainers take."""
