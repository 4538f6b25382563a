"""Serve: models behind HTTP, with the embeddings interface of OpenAI and one page for people."""
