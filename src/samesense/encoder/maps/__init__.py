"""Maps behind a model that spread its embeddings: the mean taken off, whitening, flow."""
