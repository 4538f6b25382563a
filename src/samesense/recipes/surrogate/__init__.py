"""Trains an encoder on the scores of a harvest."""
