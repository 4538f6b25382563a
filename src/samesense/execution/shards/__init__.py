"""Shards of work in, finished shards out: in this process, in several, or on a Ray cluster."""
