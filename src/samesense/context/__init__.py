"""Similarity of sentences through the contexts they fit into: Sun et al., "Sentence Similarity Based on Contexts"."""
