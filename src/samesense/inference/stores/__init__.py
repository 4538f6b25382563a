"""Copies of a collection in stores that people already run: Parquet, LanceDB, Qdrant and Postgres with pgvector."""
