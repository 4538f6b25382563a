"""From unlabelled sentences: SimCSE and RankCSE."""
