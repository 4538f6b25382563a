"""Nearest texts, mined pairs and reranking."""
