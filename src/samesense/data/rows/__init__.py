"""Rows out of sources: text, delimited, JSON, Parquet, saved datasets, the hub and memory."""
