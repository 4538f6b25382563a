"""Augmentations by name, with the paper's shares."""

from __future__ import annotations

from typing import Literal

from samesense.data.tuples.augment import Augment, deletion, synonyms
from samesense.data.tuples.paraphrase import paraphrase

AugmentName = Literal["none", "deletion", "synonym", "paraphrase"]

SHARES = {"deletion": 0.1, "synonym": 0.2, "paraphrase": 0.5}
"""Share of the words, or of the texts, that each changes unless told otherwise."""

PARAPHRASER = "prithivida/parrot_paraphraser_on_T5"
"""The model that the paper paraphrased with."""


def augment_named(
    name: AugmentName, *, share: float | None = None, seed: int = 0, paraphraser: str = PARAPHRASER
) -> Augment | None:
    """Return an augmentation, nothing for ``"none"``.

    Args:
        name: of the augmentation.
        share: of the words, or of the texts; ``None`` takes the paper's.
        seed: another seed, other words or texts.
        paraphraser: folder or hub name of the model that paraphrases.

    Raises:
        ConfigError, DataError, MissingExtraError, ModelError: if it cannot be made.
    """
    chosen = SHARES.get(name, 0.0) if share is None else share
    match name:
        case "deletion":
            return deletion(chosen, seed=seed)
        case "synonym":
            return synonyms(chosen, seed=seed)
        case "paraphrase":
            return paraphrase(paraphraser, chosen, seed=seed)
        case "none":
            return None
