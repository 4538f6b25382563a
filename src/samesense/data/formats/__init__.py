"""Rows out of files: text, delimited, JSON lines, Parquet, saved datasets and the hub."""
