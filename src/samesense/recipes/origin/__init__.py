"""Make an Origin from running documents."""
