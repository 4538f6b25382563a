"""The augmentations by the names that a flag gives them."""

from __future__ import annotations

from typing import Literal

from samesense.data.tuples.augment import Augment, deletion, synonyms
from samesense.data.tuples.paraphrase import paraphrase

AugmentName = Literal["none", "deletion", "synonym", "paraphrase"]

SHARES = {"deletion": 0.1, "synonym": 0.2, "paraphrase": 0.5}
"""Default share of the words, or for ``paraphrase`` of the texts, that an augmentation changes."""

PARAPHRASER = "prithivida/parrot_paraphraser_on_T5"
"""The paraphrasing model that the paper used."""


def augment_named(
    name: AugmentName, *, fraction: float | None = None, seed: int = 0, paraphraser: str = PARAPHRASER
) -> Augment | None:
    """Return the augmentation of this name, ``None`` for ``"none"``; ``fraction`` is of the words, or of the texts."""
    used_fraction = SHARES.get(name, 0.0) if fraction is None else fraction
    match name:
        case "deletion":
            return deletion(used_fraction, seed=seed)
        case "synonym":
            return synonyms(used_fraction, seed=seed)
        case "paraphrase":
            return paraphrase(paraphraser, used_fraction, seed=seed)
        case "none":
            return None
