"""Tables of pairs scored: the same rows and columns out, with the score beside them."""
