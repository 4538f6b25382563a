"""Finds and reads the published benchmarks, in a folder or on the hub."""
