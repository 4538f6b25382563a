"""Serve models over HTTP: OpenAI's embeddings API, similarity, reranking, search, and a web page."""
