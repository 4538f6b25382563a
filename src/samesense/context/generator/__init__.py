"""Language models that give the probability of a text given another: our own, and pretrained ones."""
