"""From bare sentences: SimCSE and RankCSE."""
