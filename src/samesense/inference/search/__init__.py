"""Nearest texts, mined pairs, clusters and reranking."""
