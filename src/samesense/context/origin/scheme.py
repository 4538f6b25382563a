"""How similarity is computed from a corpus and its models."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from samesense.context.corpus.corpus import Corpus
from samesense.context.corpus.words import words
from samesense.context.generator.base import RightGiven
from samesense.context.origin.context_set import Selection
from samesense.context.origin.similarity import Normalisation, Weights
from samesense.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Scheme:
    """How similarity is computed from models that are there.

    The right side's probability is that after the left side and the sentence, as printed, or, with
    ``right_given="sentence"``, after the sentence alone. A context in the sets of both sentences counts ``twice``, as
    Eq. 4 is written. ``reference`` sentences of the corpus, drawn by ``seed``, say what is usual in a context.
    """

    weights: Weights = field(default_factory=Weights)
    right_given: RightGiven = "both"
    normalisation: Normalisation = "standardised"
    twice: bool = True
    selection: Selection = field(default_factory=Selection)
    reference: int = 64
    seed: int = 42

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Scheme:
        """Return the scheme that ``dataclasses.asdict`` turned into JSON types."""
        try:
            fields = {"weights": Weights(**content["weights"]), "selection": Selection(**content["selection"])}
            return cls(**(content | fields))
        except (KeyError, TypeError) as error:
            raise ConfigError(f"A scheme of Origin cannot be read: {error}. Make it again.") from error


def reference_sentences(corpus: Corpus, count: int, seed: int, *, fewest: int | None = None) -> list[str]:
    """Return distinct sentences of the corpus, drawn at random, that have two words or more.

    Raises:
        ConfigError: if the corpus has fewer than ``fewest``, which is ``count`` by default.
    """
    fewest = max(2, count if fewest is None else min(count, fewest))
    drawn: dict[str, None] = {}
    for index in np.random.default_rng(seed).permutation(len(corpus)):
        if len(drawn) == count:
            break
        sentence = corpus.sentence(int(index))
        if len(words(sentence)) > 1:
            drawn[sentence] = None
    if len(drawn) < fewest:
        fix = "Lower reference" if fewest == count else "Give more documents"
        raise ConfigError(
            f"The reference is {fewest} different sentences of two words or more (2 at least); the corpus "
            f"has {len(drawn)}. {fix}."
        )
    return list(drawn)
