"""Class labels in words: those of natural language inference, and those of two classes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from samesense.data.conventions.scales import Scale

# Sets of two classes, such as QNLI and RTE, have not_entailment in place of the other two.
NLI_VALUES = {"contradiction": 0.0, "not_entailment": 0.0, "neutral": 1.0, "entailment": 2.0}
"""The value of each NLI class; higher means more similar."""

_SYNONYMS = {
    "non_entailment": "not_entailment",
    "contradicts": "contradiction",
    "contradictory": "contradiction",
    "entails": "entailment",
    "entailed": "entailment",
}
INITIALS = {"c": 0.0, "n": 1.0, "e": 2.0}
"""The value of each NLI class by its first letter."""

_ALIKE = ("equivalent", "duplicate", "paraphrase", "match", "relevant", "similar")
WORDS = {
    **dict.fromkeys(("true", "yes", "y", "t", "same", *_ALIKE), 1.0),
    **dict.fromkeys(("false", "no", "n", "f", "different", "dissimilar", "irrelevant", "unrelated"), 0.0),
    **{f"{no}_{word}": 0.0 for no in ("not", "no", "non") for word in _ALIKE},
}
"""Values of labels of two classes, as normalized by :func:`word_of`."""

ZERO_CLASSES = ("contradiction", "not_entailment")
"""NLI classes with value 0: in data with three classes, and with two."""

NLI_SCALE: Scale = (0.0, 2.0)

UNLABELLED = ("-", "-1", "-1.0", "")
"""Cells that mean "no label" in NLI data, such as SNLI's pairs without a majority label."""


def word_of(text: str) -> str:
    """Return the normalized name of a class: ``not_duplicate`` for ``Not a duplicate``."""
    # NFKC, because East Asian programs also write letters in full width.
    plain = unicodedata.normalize("NFKC", text).strip().casefold()
    word = re.sub(r"[\s_-]+", "_", plain).replace("_a_", "_")
    return _SYNONYMS.get(word, word)


def zero_class(names: Iterable[str]) -> str:
    """Return the name of label 0: ``not_entailment`` if it is the only name in use, else ``contradiction``."""
    contradiction, not_entailment = ZERO_CLASSES
    if set(names) == {not_entailment}:
        return not_entailment
    return contradiction


def label_name(label: float, zero: str) -> str:
    """Return the NLI class with this label value; ``zero`` is the class with value 0."""
    return {0.0: zero, 1.0: "neutral", 2.0: "entailment"}[label]
