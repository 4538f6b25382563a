"""Documents as sentences in order, with their words; windows around a sentence."""
