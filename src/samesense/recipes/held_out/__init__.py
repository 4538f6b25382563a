"""What a run holds out, and what it is compared on: sets, sections, folds and kept scores."""
