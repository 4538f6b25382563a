"""Copy a collection to other vector stores: Parquet, LanceDB, Qdrant and Postgres with pgvector."""
