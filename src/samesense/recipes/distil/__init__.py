"""A small student of one or several teachers."""
