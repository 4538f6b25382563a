"""Where benchmark data stand in a folder, and how each set is read."""
