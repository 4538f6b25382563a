"""Tuples of one size out of anchors with any number of partners: chosen, filled up, or left as they are.

Of more positives or negatives than there are places, some are drawn at random. Places for positives that stay empty
take copies of the anchor; places for negatives take positives or negatives of other anchors, drawn at random. Left
ragged, places stay empty.
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
"""Texts of which an anchor is not pushed away: none; those equal to it or a positive of it but for case and spaces; or
those with the same words in any order, too."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, kw_only=True)
class Completion:
    """How the tuple of an anchor is made; the same anchor, epoch and seed always give the same tuple.

    Attributes:
        data: anchors and partners.
        positives: places for positives.
        negatives: places for negatives.
        padded: fill all places; otherwise leave those without a partner of their own empty.
        fixed: the same tuples in every epoch, instead of other ones.
        seed: another seed, other tuples.
        false_negative_filter: what counts as the same text: no such negative is drawn for an anchor or a positive of
            it. ``"off"`` guards as ``"same"`` does here; the paper's rule needs that much.

    Raises:
        DataError: if places stay empty and an anchor has no positive.

    Source: Dehghan and Amasyali 2022 (SupMPN), section 5.2.
    Differs: the paper does not say how more partners than places are chosen, whether an anchor's own partners are kept
        where they are too few (here they are), nor whether negatives are drawn anew each epoch (here they are, unless
        ``fixed``).
    """

    data: TupleData
    positives: int
    negatives: int
    padded: bool = True
    fixed: bool = False
    seed: int = 0
    false_negative_filter: Guard = "same"

    def __post_init__(self) -> None:
        lacking = [row for row, own in enumerate(self.data.positives) if not own]
        if lacking and not self.padded:
            raise DataError(
                f"{self.data.source}: an anchor needs a positive where nothing is filled up, and {len(lacking)} of "
                f"{len(self.data)} have none, as {self.data.anchors[lacking[0]]!r}. Leave them out, or fill up."
            )

    @cached_property
    def _pool(self) -> list[str]:
        """The texts of all anchors that may be negatives of others."""
        both = zip(self.data.positives, self.data.negatives, strict=True)
        return [text for sides in both for own in sides for text in own]

    def __call__(self, row: int, epoch: int = 0) -> Completed:
        """Return positives and negatives of an anchor: as many as there are places if padded, else at most as many.

        DataError if the other anchors have too few texts that may be negatives of this one.
        """
        random = np.random.default_rng((self.seed, 0 if self.fixed else epoch, row))
        own = self.data.positives[row]
        positives = _chosen(own, self.positives, random)
        negatives = _chosen(self.data.negatives[row], self.negatives, random)
        if not self.padded:
            return positives, negatives
        anchor = self.data.anchors[row]
        missing = self.negatives - len(negatives)
        if missing:
            negatives += self._sampled(missing, [anchor, *own, *negatives], random, anchor)
        return positives + [anchor] * (self.positives - len(positives)), negatives

    def check(self) -> None:
        """Raise now if some tuple could not be filled later; quick where there are many different texts."""
        if not (self.padded and self.negatives):
            return
        rows, classes = range(len(self.data)), self.data.classes
        if classes is not None:  # the anchors of a class have the same texts to draw from
            for row in {classes.get(self.data.anchors[row], -1 - row): row for row in rows}.values():
                self(row)
            return
        most, key = max(map(len, self.data.positives), default=0), key_of(self.false_negative_filter)
        different: set[int] = set()
        for text in self._pool:
            different.add(key(text))
            if len(different) > most + self.negatives:
                return
        for row in rows:
            self(row)

    def _sampled(self, count: int, taken: Sequence[str], random: np.random.Generator, anchor: str) -> list[str]:
        """Return texts of other anchors, and classes, of which no two are the same, nor one the same as those taken."""
        key, classes = key_of(self.false_negative_filter), self.data.classes or {}
        known, own = {key(text) for text in taken}, classes.get(anchor)
        found: list[str] = []
        for place in _draws(len(self._pool), 4 * count, random):
            text = self._pool[place]
            if key(text) not in known and (own is None or classes.get(text) != own):
                known.add(key(text))
                found.append(text)
                if len(found) == count:
                    return found
        raise DataError(
            f"{self.data.source}: {count} negatives must be drawn from the texts of other anchors for {anchor!r}, and "
            f"these have {len(found)} different ones. Give more data, or take fewer negatives."
        )


def _chosen(texts: Sequence[str], places: int, random: np.random.Generator) -> list[str]:
    if len(texts) <= places:
        return list(texts)
    return [texts[at] for at in np.sort(random.permutation(len(texts))[:places])]


def _draws(size: int, tries: int, random: np.random.Generator) -> Iterator[int]:
    """Yield some places drawn with replacement, which are cheap and nearly always enough, and then each place once."""
    if size:
        yield from random.integers(size, size=tries)
        yield from random.permutation(size)


def same(text: str) -> str:
    """Return what spellings of one text share: letters in one case, single spaces."""
    return " ".join(text.split()).casefold()


def near(text: str) -> str:
    """Return what texts of the same words share, whatever their order and punctuation."""
    return " ".join(sorted(_WORD.findall(same(text)))) or same(text)


def key_of(false_negative_filter: Guard) -> Callable[[str], int]:
    """Return what gives texts that count as the same one number, in [0, 2**63); texts that do not, different ones."""
    fold = near if false_negative_filter == "near" else same

    def key(text: str) -> int:
        return int.from_bytes(blake2b(fold(text).encode(), digest_size=8).digest()) >> 1

    return key
