"""Training of encoders: batches, losses, settings and the training loop."""
