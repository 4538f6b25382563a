"""What the columns of a table mean: pairs, anchors, labels, texts and lists, by their names and cells."""
