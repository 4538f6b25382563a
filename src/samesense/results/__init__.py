"""Results that show themselves: as a table in a terminal and in a notebook, and as a data frame."""
