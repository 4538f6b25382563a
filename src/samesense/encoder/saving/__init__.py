"""Saving of models: folders that every reader opens, with a card."""
