"""Nearest neighbours, pair mining and reranking."""
