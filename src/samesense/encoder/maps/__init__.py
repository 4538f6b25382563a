"""Maps behind a model that spread its embeddings: centring, whitening, flow."""
