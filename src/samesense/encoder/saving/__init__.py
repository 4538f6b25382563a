"""Model folders: files that every reader opens, and the card."""
