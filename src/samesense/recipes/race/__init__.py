"""A race of methods, start models and settings within a budget of time, and the models that it recommends."""
