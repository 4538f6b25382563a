"""Candidate sentences by the words they share."""
