"""Near-duplicates of one list of texts, and matches between two."""
