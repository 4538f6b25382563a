"""A collection of texts on disk, searched by meaning."""
