"""Language models that compute the probability of a text given another: trained from scratch, or pretrained."""
