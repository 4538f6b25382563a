"""Masked language modelling on one's own documents, before any training for similarity."""
