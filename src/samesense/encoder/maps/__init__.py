"""Maps behind a model that spread its embeddings: centring and whitening."""
