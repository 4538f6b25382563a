"""Anchors with positives and negatives: reading, grouping, completing, augmenting."""
