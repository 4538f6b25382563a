"""Data of several kinds: one objective for each, on one encoder."""
