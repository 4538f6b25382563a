"""Which pairs are worth a label, and the file that labels are kept in; by a model, a function or a person."""
