"""Serve: a model behind HTTP, with the embeddings interface of OpenAI and one page for people."""
