"""Recipes: one paper a folder, the only place where the layers meet; reference settings in ``configs``."""
