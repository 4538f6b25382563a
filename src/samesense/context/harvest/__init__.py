"""Which pairs of a corpus are scored, and how they are scored together."""
