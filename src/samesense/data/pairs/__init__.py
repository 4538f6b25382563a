"""Labelled pairs: reading, checking, and what each loss is trained on."""
