"""Encode files of any size in shards that can be resumed."""
