"""What came of a run: the trained model beside its start, what lies between them, and what more labels would give."""
