"""CoSENT and the losses it is compared with, as bi-encoder and as cross-encoder."""
