"""Train on triplets of document sections."""
