"""Sweeps: many runs of the recipe from one file, and what they say together."""
