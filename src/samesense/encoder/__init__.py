"""Encoders: text in, embeddings out. Build, pool, store, and run them with little padding."""
