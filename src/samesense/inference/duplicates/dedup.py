"""Near-duplicates of a list of texts: which rows are kept, and which of them stands for each that is not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from samesense.encoder.windows import Chunk
from samesense.inference.duplicates.groups import linked, represented
from samesense.inference.duplicates.links import Links, approximate_links, exact_links, share_found
from samesense.inference.duplicates.unlike import Unlike
from samesense.inference.duplicates.work import open_work
from samesense.inference.models.model import Model
from samesense.inference.search.mining import check_threshold
from samesense.results import ShownRows
from samesense.types import Indices, Scores

By = Literal["representative", "linked"]
Keep = Literal["first", "longest", "central"]
Search = Literal["auto", "exact", "approximate"]

EXACT_ROWS = 50_000
"""Different texts up to which every pair is compared, unless asked otherwise."""

ROOM = 0.1
"""By how much links are kept below the threshold where a folder keeps them for the next one."""


class Removed(NamedTuple):
    """A row that is not kept.

    Attributes:
        row: its place, from 0.
        kept: place of the row that is kept in its stead.
        score: their cosine, in [-1, 1]; 1 for equal texts.
    """

    row: int
    kept: int
    score: float


class Group(NamedTuple):
    """Rows of which one is kept.

    Attributes:
        kept: place of that row, from 0.
        rows: all places, ascending, that one among them.
        lowest: lowest cosine of a row with the one that is kept. Far below the threshold it tells of a chain.
    """

    kept: int
    rows: tuple[int, ...]
    lowest: float


@dataclass(frozen=True)
class Distinct:
    """Texts, each once.

    Attributes:
        texts: in the order in which they first come.
        of_row: of each row the place of its text ``(rows,)``.
        first_row: of each text its first row ``(texts,)``.
        copies: of each text how many rows have it ``(texts,)``.
    """

    texts: list[str]
    of_row: Indices
    first_row: Indices
    copies: Indices


def distinct(texts: Sequence[str]) -> Distinct:
    """Return the texts of rows, each once."""
    number_of: dict[str, int] = {}
    of_row = np.fromiter(
        (number_of.setdefault(text, len(number_of)) for text in texts), dtype=np.int64, count=len(texts)
    )
    _, first_row, copies = np.unique(of_row, return_index=True, return_counts=True)
    return Distinct(list(number_of), of_row, first_row, copies)


@dataclass(frozen=True, kw_only=True, repr=False)
class Deduplicated(ShownRows):
    """What is kept of a list of texts. Prints as a line.

    Attributes:
        threshold: cosine from which on two texts count as the same.
        kept_by: of each row the row that is kept in its stead, itself if it is kept ``(rows,)``.
        scores: cosine of each row with that row, 1 for equal texts ``(rows,)``.
        recall: share of the pairs above the threshold that the search found, by a sample; ``None``: all; NaN: the
            sample has none.
        sampled: how many pairs the sample has.
        unmerged: rows that are kept though they are as close to another, since the two differ in what the model did not
            read: behind the cut, or unknown to its tokenizer.
        anew: what :meth:`at` does.
    """

    threshold: float
    kept_by: Indices
    scores: Scores
    recall: float | None
    sampled: int
    unmerged: Indices
    anew: Callable[[float], Deduplicated]

    @property
    def kept(self) -> Indices:
        """Places of the rows that are kept, ascending."""
        return np.flatnonzero(self.kept_by == np.arange(len(self.kept_by)))

    @property
    def removed(self) -> list[Removed]:
        """The other rows, in their order."""
        rows = np.flatnonzero(self.kept_by != np.arange(len(self.kept_by)))
        columns = rows.tolist(), self.kept_by[rows].tolist(), self.scores[rows].tolist()
        return [Removed(*row) for row in zip(*columns, strict=True)]

    @property
    def groups(self) -> list[Group]:
        """Groups of two rows or more, the largest first, of equal ones that with the lowest row."""
        order = np.argsort(self.kept_by, kind="stable")
        cuts = np.flatnonzero(np.diff(self.kept_by[order])) + 1
        row_groups = [rows for rows in np.split(order, cuts) if len(rows) > 1]
        row_groups.sort(key=lambda rows: (-len(rows), int(rows[0])))
        return [
            Group(int(self.kept_by[rows[0]]), tuple(rows.tolist()), float(self.scores[rows].min()))
            for rows in row_groups
        ]

    def at(self, threshold: float) -> Deduplicated:
        """Return what is kept at another threshold; nothing is encoded, and what was found is searched only once."""
        check_threshold(threshold)
        return self.anew(threshold)

    def __str__(self) -> str:
        """Return how many are kept."""
        rows, count = len(self.kept_by), len(self.kept)
        tail = share_found(self.recall, self.sampled, "pairs")
        text = f"{count} of {rows} texts kept, {rows - count} removed at a cosine of {self.threshold:.4g} or more{tail}"
        left = len(self.unmerged)
        return f"{text}; {left} of those kept differ from others in what the model did not read" if left else text

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows that are removed, each with the row that is kept in its stead, and their cosine."""
        return [row._asdict() for row in self.removed]

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain JSON types."""
        rows, count = len(self.kept_by), len(self.kept)
        measured = self.recall is not None and self.sampled > 0
        return {
            "texts": rows, "kept": count, "removed": rows - count, "unmerged": len(self.unmerged),
            "threshold": self.threshold, "recall": self.recall if measured else None, "sampled": self.sampled,
        }  # fmt: skip


def approximately(search: Search, rows: int) -> bool:
    """Return whether so many rows are searched approximately."""
    return search == "approximate" or (search == "auto" and rows > EXACT_ROWS)


def dedup(
    texts: Sequence[str],
    model: Model,
    threshold: float,
    *,
    by: By = "representative",
    keep: Keep = "first",
    search: Search = "auto",
    work: Path | None = None,
    chunk: Chunk | None = None,
) -> Deduplicated:
    """Find which texts say the same as another at a threshold, and keep one of them.

    Texts that differ in what the model did not read are not the same, whatever their cosine.

    Memory grows with the texts and their links, of each :data:`~samesense.inference.duplicates.links.LINKS_PER_ROW` at
    most; vectors are mapped from a file.

    Args:
        texts: one a row.
        model: encodes them, equal ones once.
        threshold: cosine from which on two texts count as the same, from -1 to 1.
        by: ``"representative"`` keeps a text unless it is close to one that is kept; ``"linked"`` keeps one text of
            all that are linked by pairs, so that ends of a chain need not be close.
        keep: which text goes first: the first, the longest, or the one that is close to most rows.
        search: compare all pairs, or each text with those of the lists closest to it; ``"auto"`` does the latter above
            :data:`EXACT_ROWS` different texts.
        work: folder that keeps vectors and links, for other thresholds of the same texts.
        chunk: what is taken of the windows of texts that are longer than what the model reads; ``None`` cuts them.

    Raises:
        ConfigError: if the threshold is no cosine.
        ModelError: if a vector is not finite or all zeros.
        OutputError: if ``work`` holds something else.
    """
    check_threshold(threshold)
    once = distinct(texts)
    approximate = approximately(search, len(once.texts))
    work_folder = open_work(work, f"dedup, {'approximate' if approximate else 'exact'}", model, once.texts, chunk)
    unlike = Unlike(once.texts, model.reading, in_windows=chunk is not None)

    def at(cut: float) -> Deduplicated:
        floor = cut if work is None else max(-1.0, cut - ROOM)
        find = approximate_links if approximate else exact_links
        links = work_folder.links(cut, lambda vectors: find(vectors, floor))
        same = links.scores >= cut
        same[same] = ~unlike(links.first[same], links.second[same])
        left = (links.scores >= cut) & ~same
        apart = np.unique(np.concatenate([links.first[left], links.second[left]]))
        links = replace(links, first=links.first[same], second=links.second[same], scores=links.scores[same])
        order = _order(once, links, cut, keep)
        retained = (linked if by == "linked" else represented)(work_folder.vectors, links, cut, order, unlike)
        return Deduplicated(
            threshold=cut, kept_by=once.first_row[retained.kept_by][once.of_row], scores=retained.scores[once.of_row],
            recall=links.recall, sampled=links.sampled, anew=at,
            unmerged=once.first_row[apart[retained.kept_by[apart] == apart]],
        )  # fmt: skip

    return at(threshold)


def _order(once: Distinct, links: Links, threshold: float, keep: Keep) -> Indices:
    """Return the texts in the order in which they may stay; of equal ones the first goes first."""
    if keep == "longest":
        return np.argsort([-len(text) for text in once.texts], kind="stable")
    if keep == "central":
        near = once.copies.copy()
        close = links.scores >= threshold
        np.add.at(near, links.first[close], once.copies[links.second[close]])
        np.add.at(near, links.second[close], once.copies[links.first[close]])
        return np.argsort(-near, kind="stable")
    return np.arange(len(once.texts))
