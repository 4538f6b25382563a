"""In which words a language model is asked for a sentence, and which of its layers answer."""

PROMPT = 'The topic of this sentence : "{text}" is in one word:"'
"""The prompt, chosen on STS-B dev among six; see reproduce/context/words.md."""

OWN_LAYER = 1
"""Layer whose hidden states are a sentence's own vector; 0 is the embeddings."""

LAYERS_ABOVE_STATE = 2
"""Layers above that of the state at the end of the prompt: layer 28 of 30, chosen on STS-B dev."""
