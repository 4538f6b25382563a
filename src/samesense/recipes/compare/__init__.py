"""Several models, one set of tasks, one page."""
