"""Bare sentences."""
