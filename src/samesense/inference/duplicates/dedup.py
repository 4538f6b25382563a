"""Near-duplicates of a list of texts: which rows are kept, and which kept row represents each removed one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from samesense.choices import Chunk, DedupBy, Keep, SearchMethod
from samesense.errors import ConfigError
from samesense.inference.duplicates.groups import linked, represented
from samesense.inference.duplicates.link_shards import search_in_lists
from samesense.inference.duplicates.links import Links, exact_links, list_search, share_found
from samesense.inference.duplicates.thresholded import Thresholded
from samesense.inference.duplicates.unlike import Unlike
from samesense.inference.duplicates.vector_shards import Sharing
from samesense.inference.duplicates.work import Search, open_work
from samesense.inference.models.model import Model
from samesense.inference.search.mining import check_threshold
from samesense.types import Embeddings, Indices, Scores

EXACT_ROWS = 50_000
"""Number of distinct texts up to which ``search="auto"`` compares every pair."""


class Removed(NamedTuple):
    """A row that is not kept.

    Attributes:
        row: its index, from 0.
        kept: index of the row that is kept instead.
        score: their cosine, in [-1, 1]; 1 for equal texts.
    """

    row: int
    kept: int
    score: float


class Group(NamedTuple):
    """A group of near-duplicates, one of which is kept.

    Attributes:
        kept: index of the kept row, from 0.
        rows: indices of all rows, ascending, the kept one included.
        lowest: lowest cosine of a row with the kept one. A value far below the threshold indicates a chain.
    """

    kept: int
    rows: tuple[int, ...]
    lowest: float


@dataclass(frozen=True)
class Distinct:
    """The distinct texts of some rows.

    Attributes:
        texts: the texts, in the order of their first row.
        of_row: index of each row's text ``(rows,)``.
        first_row: first row of each text ``(texts,)``.
        copies: number of rows of each text ``(texts,)``.
    """

    texts: list[str]
    of_row: Indices
    first_row: Indices
    copies: Indices


def distinct(texts: Sequence[str]) -> Distinct:
    """Return the distinct texts of rows."""
    number_of: dict[str, int] = {}
    of_row = np.fromiter(
        (number_of.setdefault(text, len(number_of)) for text in texts), dtype=np.int64, count=len(texts)
    )
    # Numbers ascend by first appearance, so that the result is in the order of the texts.
    _, first_row, copies = np.unique(of_row, return_index=True, return_counts=True)
    return Distinct(list(number_of), of_row, first_row, copies)


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Deduplicated(Thresholded):
    """The kept rows of a list of texts. Prints as a line.

    Attributes:
        threshold: cosine from which on two texts count as the same.
        kept_by: for each row the row that is kept instead; the row itself if it is kept ``(rows,)``.
        scores: cosine of each row with that row, 1 for equal texts ``(rows,)``.
        recall: share of the pairs above the threshold that the search found, measured on a sample; ``None`` if the
            search was exact, NaN if the sample has no such pair.
        sampled: number of pairs in the sample.
        unmerged: rows kept although another row is at the threshold or above, because the two differ in what the model
            did not read: after the truncation, or unknown to its tokenizer.
        distinct: the different texts of the rows.
        vectors: unit vectors of the different texts ``(distinct, dim)``, memory-mapped.
    """

    kept_by: Indices
    scores: Scores
    distinct: Distinct
    vectors: Embeddings

    @property
    def kept(self) -> Indices:
        """Indices of the kept rows, ascending."""
        return np.flatnonzero(self.kept_by == np.arange(len(self.kept_by)))

    @property
    def removed(self) -> list[Removed]:
        """The removed rows, in their order."""
        rows = np.flatnonzero(self.kept_by != np.arange(len(self.kept_by)))
        columns = rows.tolist(), self.kept_by[rows].tolist(), self.scores[rows].tolist()
        return [Removed(*row) for row in zip(*columns, strict=True)]

    @property
    def groups(self) -> list[Group]:
        """Groups of two rows or more, the largest first, ties by their lowest row."""
        order = np.argsort(self.kept_by, kind="stable")
        cuts = np.flatnonzero(np.diff(self.kept_by[order])) + 1
        row_groups = [rows for rows in np.split(order, cuts) if len(rows) > 1]
        row_groups.sort(key=lambda rows: (-len(rows), int(rows[0])))
        return [
            Group(int(self.kept_by[rows[0]]), tuple(rows.tolist()), float(self.scores[rows].min()))
            for rows in row_groups
        ]

    def __str__(self) -> str:
        """Return how many rows are kept, as a line of text."""
        rows = len(self.kept_by)
        count = len(self.kept)
        tail = share_found(self.recall, self.sampled, "pairs")
        text = f"{count} of {rows} texts kept, {rows - count} removed at a cosine of {self.threshold:.4g} or more{tail}"
        unmerged = len(self.unmerged)
        if unmerged:
            text += f"; {unmerged} of those kept differ from others in what the model did not read"
        return text

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the removed rows, each with the row that is kept instead and their cosine."""
        return [row._asdict() for row in self.removed]

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain JSON types."""
        rows = len(self.kept_by)
        count = len(self.kept)
        return {
            "texts": rows,
            "kept": count,
            "removed": rows - count,
            **self.search_to_dict(),
        }


def approximately(search: SearchMethod, texts: int, *, shared: bool) -> bool:
    """Return whether this number of texts is searched approximately; ConfigError if an exact search is to be shared."""
    approximate = search == "approximate" or (search == "auto" and texts > EXACT_ROWS)
    if shared and not approximate:
        raise ConfigError(
            f"executor, workers and address share an approximate search; received {texts} different texts to search "
            "exactly. Leave the three out, or set `search` to approximate."
        )
    return approximate


def dedup(
    texts: Sequence[str],
    model: Model,
    threshold: float,
    *,
    by: DedupBy = "representative",
    keep: Keep = "first",
    search: SearchMethod = "auto",
    work: Path | None = None,
    chunk: Chunk | None = None,
    sharing: Sharing | None = None,
) -> Deduplicated:
    """Group texts that say the same at a threshold, and keep one of each group.

    Texts that differ in what the model did not read are kept apart even where their cosine is 1.

    Memory grows with the texts and their links, at most :data:`~samesense.inference.duplicates.links.LINKS_PER_ROW` a
    text; vectors are memory-mapped from a file.

    Args:
        texts: the texts, one a row.
        model: encodes the texts, equal ones once.
        threshold: cosine from which on two texts count as the same, from -1 to 1.
        by: ``"representative"`` keeps a text unless it is close to a kept one; ``"linked"`` keeps one text of each
            connected component, so that the ends of a chain need not be close.
        keep: which text is preferred: the first, the longest, or the one that is close to most rows.
        search: compare all pairs, or each text with those of the closest lists; ``"auto"`` does the latter above
            :data:`EXACT_ROWS` distinct texts.
        work: folder that keeps vectors and links, for other thresholds of the same texts.
        chunk: how the windows of texts longer than the model reads are combined; ``None`` truncates such texts.
        sharing: shares an approximate search among many workers, whose finished work is in ``work``; ``None`` searches
            in this process, with the same result.

    Raises:
        ConfigError: if the threshold is not a cosine, or an exact search is to be shared.
        ModelError: if a vector is not finite or all zeros.
        OutputError: if ``work`` holds something else.
    """
    check_threshold(threshold)
    unique = distinct(texts)
    approximate = approximately(search, len(unique.texts), shared=sharing is not None)
    what = f"dedup, {'approximate' if approximate else 'exact'}"
    work_folder = open_work(work, what, model, unique.texts, chunk, sharing=sharing)
    unlike = Unlike(unique.texts, model.reading, in_windows=chunk is not None)
    group = linked if by == "linked" else represented

    search_links: Search = exact_links
    if approximate:
        search_links = search_in_lists(work_folder, list_search(), sharing)

    def at_threshold(level: float) -> Deduplicated:
        links = work_folder.links(level, search_links)
        close = links.scores >= level
        # Texts that differ in what the model did not read are no duplicates, even at a cosine of 1.
        same = close.copy()
        same[close] = ~unlike(links.first[close], links.second[close])
        different = close & ~same
        apart = np.unique(np.concatenate([links.first[different], links.second[different]]))
        links = replace(links, first=links.first[same], second=links.second[same], scores=links.scores[same])
        order = _order(unique, links, level, keep)
        groups = group(work_folder.vectors, links, level, order, unlike)
        # Groups are of distinct texts; their rows follow from them.
        return Deduplicated(
            threshold=level,
            kept_by=unique.first_row[groups.kept_by][unique.of_row],
            scores=groups.scores[unique.of_row],
            recall=links.recall,
            sampled=links.sampled,
            recompute=at_threshold,
            distinct=unique,
            vectors=work_folder.vectors,
            unmerged=unique.first_row[apart[groups.kept_by[apart] == apart]],
        )

    return at_threshold(threshold)


def _order(unique: Distinct, links: Links, threshold: float, keep: Keep) -> Indices:
    """Return the texts in the order in which they are preferred; ties keep their order."""
    if keep == "longest":
        return np.argsort([-len(text) for text in unique.texts], kind="stable")
    if keep == "central":
        # Equal texts are close to each other as well.
        near = unique.copies.copy()
        close = links.scores >= threshold
        # A text has several links, and an indexed addition would count one of them.
        np.add.at(near, links.first[close], unique.copies[links.second[close]])
        np.add.at(near, links.second[close], unique.copies[links.first[close]])
        return np.argsort(-near, kind="stable")
    return np.arange(len(unique.texts))
