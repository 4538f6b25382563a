"""Builds tuples of a fixed size from anchors with any number of positives and negatives.

An anchor with more positives or negatives than the tuple has slots for gets a random sample of them. Empty slots for
positives are padded with copies of the anchor; empty slots for negatives with random positives or negatives of other
anchors. Ragged tuples are not padded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Literal

import numpy as np

from samesense.data.tuples.data import TupleData
from samesense.errors import DataError

Completed = tuple[list[str], list[str]]
"""Positives and negatives of one anchor."""

Guard = Literal["off", "same", "near"]
"""Filter of false negatives: none; texts that equal the anchor or one of its positives up to case and whitespace; or
also texts with the same words in another order."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True)
class Completion:
    """Builds the tuple of an anchor; the result depends only on the anchor, the epoch and the seed.

    Attributes:
        data: anchors with their positives and negatives.
        positives: number of positives in a tuple.
        negatives: number of negatives in a tuple.
        padded: pad tuples to their full size; otherwise they hold only the anchor's own positives and negatives.
        fixed: use the same tuples in every epoch.
        seed: seed of all draws.
        false_negative_filter: which texts count as the same text; no text that is the same as the anchor or one of its
            positives is drawn as a negative. ``"off"`` acts like ``"same"`` here, the least that the paper's rule
            needs.

    Raises:
        DataError: if tuples are not padded and an anchor has no positive.

    Source: Dehghan and Amasyali 2022 (SupMPN), section 5.2.
    Differs: the paper does not say how to choose among too many positives or negatives, whether an anchor with too few
        keeps its own (here it does), nor whether negatives are resampled each epoch (here they are, unless ``fixed``).
    """

    data: TupleData
    positives: int
    negatives: int
    padded: bool = True
    fixed: bool = False
    seed: int = 0
    false_negative_filter: Guard = "same"

    def __post_init__(self) -> None:
        if self.padded:
            return
        rows = [row for row, positives in enumerate(self.data.positives) if not positives]
        if rows:
            raise DataError(
                f"{self.data.source}: an anchor needs a positive where nothing is filled up, and {len(rows)} of "
                f"{len(self.data)} have none, as {self.data.anchors[rows[0]]!r}. Leave them out, or fill up."
            )

    @cached_property
    def _pool(self) -> list[str]:
        """The positives and negatives of all anchors, from which negatives of other anchors are drawn."""
        partners = zip(self.data.positives, self.data.negatives, strict=True)
        return [text for sides in partners for side in sides for text in side]

    def __call__(self, row: int, epoch: int = 0) -> Completed:
        """Return the positives and negatives of an anchor's tuple: of full size if padded, else of at most that size.

        DataError if the other anchors have too few texts that can be negatives of this one.
        """
        # Seeded by epoch and row, so that tuples do not depend on the order in which they are built.
        random = np.random.default_rng((self.seed, 0 if self.fixed else epoch, row))
        own_positives = self.data.positives[row]
        positives = _choose(own_positives, self.positives, random)
        negatives = _choose(self.data.negatives[row], self.negatives, random)
        if not self.padded:
            return positives, negatives
        anchor = self.data.anchors[row]
        missing = self.negatives - len(negatives)
        if missing:
            negatives += self._sampled(missing, [anchor, *own_positives, *negatives], random, anchor)
        return positives + [anchor] * (self.positives - len(positives)), negatives

    def key(self) -> Callable[[str], int]:
        """Return what gives texts that are no negatives of each other one number, as those of a class."""
        classes = self.data.classes or {}
        spelled = key_of(self.false_negative_filter)
        return lambda text: classes[text] if text in classes else spelled(text)

    def check(self) -> None:
        """Raise DataError now if a tuple could not be filled later; fast if there are many different texts."""
        if not (self.padded and self.negatives):
            return
        rows = range(len(self.data))
        classes = self.data.classes
        if classes is not None:  # all anchors of a class draw from the same texts, so one of each is enough
            for row in {classes.get(self.data.anchors[row], -1 - row): row for row in rows}.values():
                self(row)
            return
        most_positives = max(map(len, self.data.positives), default=0)
        key = key_of(self.false_negative_filter)
        distinct: set[int] = set()
        for text in self._pool:
            distinct.add(key(text))
            # So many different texts suffice for every anchor, whatever its own are.
            if len(distinct) > most_positives + self.negatives:
                return
        for row in rows:
            self(row)

    def _sampled(self, count: int, taken: Sequence[str], random: np.random.Generator, anchor: str) -> list[str]:
        """Return distinct texts of other anchors (and other classes) that differ from those in ``taken``."""
        key = key_of(self.false_negative_filter)
        classes = self.data.classes or {}
        anchor_class = classes.get(anchor)
        excluded = {key(text) for text in taken}
        negatives: list[str] = []
        # Rejection sampling: texts that must not be negatives are skipped.
        for index in _draw_indices(len(self._pool), 4 * count, random):
            text = self._pool[index]
            if key(text) not in excluded and (anchor_class is None or classes.get(text) != anchor_class):
                excluded.add(key(text))
                negatives.append(text)
                if len(negatives) == count:
                    return negatives
        raise DataError(
            f"{self.data.source}: {count} negatives must be drawn from the texts of other anchors for {anchor!r}, and "
            f"these have {len(negatives)} different ones. Give more data, or take fewer negatives."
        )


def _choose(texts: Sequence[str], limit: int, random: np.random.Generator) -> list[str]:
    """Return the texts, or a random sample of them in their order if there are more than ``limit``."""
    if len(texts) <= limit:
        return list(texts)
    return [texts[index] for index in np.sort(random.permutation(len(texts))[:limit])]


def _draw_indices(size: int, tries: int, random: np.random.Generator) -> Iterator[int]:
    """Yield some indices drawn with replacement, which is cheap and nearly always enough, then every index once."""
    if size:
        yield from random.integers(size, size=tries)
        yield from random.permutation(size)


def normalize_text(text: str) -> str:
    """Return a text with normalized case and whitespace."""
    return " ".join(text.split()).casefold()


def sort_words(text: str) -> str:
    """Return the sorted words of a text, so that texts with the same words compare equal in any order."""
    return " ".join(sorted(_WORD.findall(normalize_text(text)))) or normalize_text(text)


def key_of(false_negative_filter: Guard) -> Callable[[str], int]:
    """Return a function that hashes texts to [0, 2**63), the same number for texts that count as the same."""
    fold = sort_words if false_negative_filter == "near" else normalize_text

    def key(text: str) -> int:
        # Not hash(), which differs between the processes of a run; 63 bits fit an int64.
        return int.from_bytes(blake2b(fold(text).encode(), digest_size=8).digest()) >> 1

    return key
