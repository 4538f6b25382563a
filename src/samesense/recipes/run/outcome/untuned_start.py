"""Whether a start model was never tuned for sentences, as some rules are for such models alone.

Vectors of a raw language model lie in a narrow cone. So do those of some tuned models, such as E5, and of any model on
texts of one narrow subject. What tells them apart is whether they find a paraphrase that shares hardly a word.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from functools import cache
from importlib import resources

import numpy as np

from samesense.encoder.cosine import unit
from samesense.encoder.maps.standardize import NARROW
from samesense.execution.unread import counted
from samesense.inference.models.model import Model
from samesense.types import Floats

LEAST_RECALL = 0.85
"""Recall of paraphrases from which on a model counts as tuned.

Of five tuned models (all-MiniLM-L6-v2, paraphrase-MiniLM-L3-v2, bge-small-en, multilingual-e5-small, wordllama) the
lowest has 0.94 in its best language, of three raw ones (BERT of six layers, SmolLM2, a re-ranker's trunk) the highest
has 0.72.
"""


def is_untuned(start: Model, cosines: Floats | None) -> bool:
    """Return whether a start was never tuned for sentences.

    Args:
        start: the start model.
        cosines: of random pairs of the training texts ``(pairs,)``; ``None`` for a model without embeddings.
    """
    if cosines is None or float(cosines.mean()) < NARROW:
        return False
    return max(paraphrase_recall(start).values()) < LEAST_RECALL


def paraphrase_recall(model: Model) -> dict[str, float]:
    """Return by language how often the nearest sentence is the paraphrase, in either direction, from 0 to 1."""
    with counted(apart=True):  # a command reports unread texts of its data, not of these
        return {language: _recall(model, *sides) for language, sides in _paraphrases().items()}


def _recall(model: Model, sentences: Sequence[str], paraphrases: Sequence[str]) -> float:
    first, second = (unit(np.asarray(model.encode(texts), dtype=np.float32)) for texts in (sentences, paraphrases))
    cosines = first @ second.T
    numbers = np.arange(len(sentences))
    hits = [cosines.argmax(axis=axis) == numbers for axis in (0, 1)]
    return float(np.mean(hits))


@cache
def _paraphrases() -> dict[str, tuple[list[str], list[str]]]:
    """Return sentences and their paraphrases by language."""
    file = resources.files("samesense.recipes.run.outcome") / "paraphrases.tsv"
    by_language: dict[str, tuple[list[str], list[str]]] = {}
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines(), delimiter="\t", quoting=csv.QUOTE_NONE)
    for row in rows:
        sentences, paraphrases = by_language.setdefault(row["language"], ([], []))
        sentences.append(row["sentence"])
        paraphrases.append(row["paraphrase"])
    return by_language
