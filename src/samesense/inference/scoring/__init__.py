"""Score tables of pairs: the output has the same rows and columns, and the scores as new columns."""
