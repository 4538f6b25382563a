"""Collections of texts on disk, searched by vectors and by words."""
