"""SupMPN: several positives and several negatives per anchor."""
