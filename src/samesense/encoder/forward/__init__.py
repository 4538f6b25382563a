"""A model run over texts: little padding, bounded memory, the faster arithmetic, exact gradients."""
