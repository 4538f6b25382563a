"""From running documents to a fast encoder: Origin, harvest and Surrogate in one run."""
