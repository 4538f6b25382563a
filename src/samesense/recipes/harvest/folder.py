"""What the folder of a harvest holds beside what :mod:`samesense.execution.shards.job` writes there."""

VECTORS = "vectors"
"""Folder of the vectors of the sentences that take part, in a harvest by next words: shards of its own."""

COLUMNS = ("sentence1", "sentence2", "score", "kind")
"""Columns of a shard that say what a pair is; further ones say where its sentences stand."""
