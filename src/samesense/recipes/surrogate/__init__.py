"""An encoder that learns the scores of a harvest."""
