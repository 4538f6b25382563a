"""Labelled sentence pairs: the one shape that training and evaluation receive."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from samesense.data.formats.files import split_suffix
from samesense.data.formats.labels import Kind, Scale
from samesense.errors import ConfigError, DataError
from samesense.hashes import json_hash, rows_hash
from samesense.types import Pair

_JOINT = " + "


@dataclass(frozen=True, kw_only=True)
class PairData:
    """Labelled sentence pairs of one source, in its order.

    Attributes:
        sentences1: first sentence of every pair.
        sentences2: second sentence of every pair.
        labels: one number a pair; larger means more similar.
        subsets: name of the part each pair belongs to, where the source says so.
        kind: ``"scored"``, ``"binary"``, ``"nli"`` or ``"triple"``.
        scale: lowest and highest value a label can take; ``None`` if no known range holds them.
        source: the file, folder or name as the user gave it.
        label_column: where the labels come from; the negative column for triples.
        dropped: bad rows left out on request.
        dropped_unlabelled: rows marked as having no label, always left out.
        own_scale: whether ``scale`` was taken from the labels, which no known range has for its ends.
        rows: number of the row of each pair, as its source counts them, where it is of one source.
    """

    sentences1: list[str]
    sentences2: list[str]
    labels: list[float]
    subsets: list[str] | None
    kind: Kind
    scale: Scale | None
    source: str
    label_column: str
    dropped: int = 0
    dropped_unlabelled: int = 0
    own_scale: bool = False
    rows: list[int] | None = field(default=None, compare=False)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def name(self) -> str:
        """Short name for people: the file name of a file, else the source itself."""
        parts = self.source.split(_JOINT)
        return _JOINT.join(Path(part).name if split_suffix(part)[0] else part for part in parts)

    @property
    def graded(self) -> bool:
        """Whether the labels say more of a pair than yes or no."""
        return self.kind not in ("binary", "triple")

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of the content in order; equal for equal content in any file format."""
        parts = self.subsets if self.subsets is not None else [""] * len(self)
        rows = zip(self.sentences1, self.sentences2, self.labels, parts, strict=True)
        return rows_hash(rows, json.dumps([self.kind, self.subsets is not None]).encode())

    def pairs(self) -> list[Pair]:
        """Return the two sentences of every row."""
        return list(zip(self.sentences1, self.sentences2, strict=True))

    def take(self, indices: Iterable[int]) -> PairData:
        """Return the rows at these positions, in the order given."""
        chosen = [int(index) for index in indices]
        return replace(
            self,
            sentences1=[self.sentences1[index] for index in chosen],
            sentences2=[self.sentences2[index] for index in chosen],
            labels=[self.labels[index] for index in chosen],
            subsets=None if self.subsets is None else [self.subsets[index] for index in chosen],
            rows=None if self.rows is None else [self.rows[index] for index in chosen],
        )

    def split(
        self, fraction: float, seed: int, *, apart: Literal["pairs", "sentences"] = "pairs"
    ) -> tuple[PairData, PairData]:
        """Hold out a part so that no pair, or no sentence, stands on both sides.

        Pairs count as one whichever sentence comes first, and pairs and sentences whatever their case and punctuation,
        as for the doctor's leaks. The choice depends on the seed and the sentences only, not on the order of the rows.
        Of sentences, pairs that hang together go to one side: the connected components of shared sentences, drawn at
        random among those that still fit.

        Returns:
            The larger rest and the held-out part, each in the order of the source.

        Raises:
            ConfigError: if the fraction is not between 0 and 1.
            DataError: if one side would be empty, or less than half of the fraction can be held out.
        """
        if not 0 < fraction < 1:
            raise ConfigError(f"The share to hold out must lie between 0 and 1; received {fraction}. Example: 0.1")
        plain = [plain_pair(*pair) for pair in self.pairs()]
        groups = components(plain) if apart == "sentences" else _repetitions(plain)
        wanted = max(1, round(fraction * len(self)))
        most = wanted if apart == "sentences" else len(self)
        held: set[int] = set()
        for group in self._drawn(groups, seed):
            if len(held) < wanted and len(held) + len(group) <= most:
                held.update(group)
        if not held or len(held) == len(self) or 2 * len(held) < wanted:
            raise DataError(
                f"{self.source}: {len(self)} rows with {len(set(plain))} different pairs cannot be split into two parts"
                + (
                    f", since {max(map(len, groups))} hang together by their sentences. "
                    if apart == "sentences"
                    else ". "
                )
                + "Give a file with more pairs, or a dev file of its own."
            )
        return self.take(index for index in range(len(self)) if index not in held), self.take(sorted(held))

    def _drawn(self, groups: Sequence[list[int]], seed: int) -> list[list[int]]:
        """Return groups of rows in random order."""
        spelled = self.pairs()
        order = [min(pair_key(*spelled[row]) for row in rows) for rows in groups]
        return [groups[at] for at in sorted(range(len(groups)), key=lambda at: json_hash([seed, *order[at]]))]


def _repetitions(pairs: Sequence[Pair]) -> list[list[int]]:
    """Return the places of each pair."""
    groups: dict[Pair, list[int]] = {}
    for index, pair in enumerate(pairs):
        groups.setdefault(pair, []).append(index)
    return list(groups.values())


def components(pairs: Sequence[Pair]) -> list[list[int]]:
    """Return the connected components of pairs by their sentences: places of pairs, in order of first appearance."""
    group: dict[str, str] = {}

    def root(text: str) -> str:
        while group.setdefault(text, text) != text:
            group[text] = group[group[text]]
            text = group[text]
        return text

    for one, other in pairs:
        group[root(one)] = root(other)
    found: dict[str, list[int]] = {}
    for place, (one, _) in enumerate(pairs):
        found.setdefault(root(one), []).append(place)
    return list(found.values())


def sentences_of(pairs: Iterable[Pair]) -> set[str]:
    """Return the sentences of pairs."""
    return {text for pair in pairs for text in pair}


def pair_key(first: str, second: str) -> Pair:
    """Return what two spellings of one pair share: letters in one case, the smaller sentence first."""
    one, two = first.casefold(), second.casefold()
    return (one, two) if one <= two else (two, one)


class _DropPunctuation(dict[int, int | None]):
    """Translation table that deletes punctuation, filled as characters are met."""

    def __missing__(self, code: int) -> int | None:
        self[code] = None if unicodedata.category(chr(code)).startswith("P") else code
        return self[code]


_TABLE = _DropPunctuation()


def plain_pair(first: str, second: str) -> Pair:
    """Return what two spellings of one pair share when punctuation and spaces count as little as case and order.

    A sentence of punctuation alone is taken as it is.
    """
    one, two = plain_text(first), plain_text(second)
    return (one, two) if one <= two else (two, one)


def plain_text(text: str) -> str:
    """Return a text in one case, without punctuation, with single spaces; as it is if it is of punctuation alone."""
    return " ".join(text.casefold().translate(_TABLE).split()) or text.casefold()


def concat(parts: Sequence[PairData]) -> PairData:
    """Join pairs of one kind and scale; DataError if there is nothing to join, or labels cannot be compared."""
    if not parts:
        raise DataError("There is nothing to join: no data was given. Give at least one source.")
    first = parts[0]
    for other in parts[1:]:
        if (other.kind, other.scale) != (first.kind, first.scale):
            raise DataError(
                f"Labels can be joined only if they are of one kind and scale; {first.source} is {first.kind} on "
                f"{first.scale} and {other.source} is {other.kind} on {other.scale}. Give one scale to all "
                "as `label_range` LOW HIGH, train on them apart, or rescale one file."
            )
    subsets = [name for part in parts for name in (part.subsets or [""] * len(part))]
    return PairData(
        sentences1=[text for part in parts for text in part.sentences1],
        sentences2=[text for part in parts for text in part.sentences2],
        labels=[label for part in parts for label in part.labels],
        subsets=subsets if any(part.subsets is not None for part in parts) else None,
        kind=first.kind,
        scale=first.scale,
        source=_JOINT.join(part.source for part in parts),
        label_column=_JOINT.join(dict.fromkeys(part.label_column for part in parts)),
        dropped=sum(part.dropped for part in parts),
        dropped_unlabelled=sum(part.dropped_unlabelled for part in parts),
        own_scale=any(part.own_scale for part in parts),
        rows=first.rows if len(parts) == 1 else None,
    )
