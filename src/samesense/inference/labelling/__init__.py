"""Choose pairs that are worth a label, and write labels to a file; labelled by a model, a function or a person."""
