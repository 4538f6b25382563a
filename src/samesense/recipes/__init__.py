"""Recipes: one paper a file, the only place where the layers meet; reference settings in ``configs``."""
