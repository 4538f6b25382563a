"""Parquet from anywhere, read in bounded memory: how much a column takes is known before its pages are unpacked."""
