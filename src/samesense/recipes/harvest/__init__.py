"""Score pairs of a corpus with an Origin, in shards that can be resumed."""
