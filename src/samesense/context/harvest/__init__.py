"""Chooses the pairs of a corpus that are scored for a harvest, and scores them."""
