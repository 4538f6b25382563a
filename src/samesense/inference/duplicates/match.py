"""For each text of one list the closest of another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

from samesense.encoder.cosine import row_cosines
from samesense.errors import ConfigError
from samesense.inference.duplicates.dedup import ROOM, Distinct, Search, approximately, distinct
from samesense.inference.duplicates.links import LINKS_PER_ROW, Links, share_found
from samesense.inference.duplicates.work import open_work
from samesense.inference.models.model import Model
from samesense.inference.search.exact import Best, nearest, unit_rows
from samesense.inference.search.lists import blocks, make_lists, near_in_lists
from samesense.inference.search.mining import check_threshold, parts
from samesense.types import Embeddings, Indices


class Match(NamedTuple):
    """Two rows that belong together.

    Attributes:
        row: place in the first list, from 0.
        match: place in the second.
        score: their cosine, in [-1, 1]; 1 for equal texts.
    """

    row: int
    match: int
    score: float


@dataclass(frozen=True, kw_only=True)
class Matched:
    """What was found of one list in another. Prints as a line.

    Attributes:
        threshold: lowest cosine of a match.
        pairs: rows of the first list in their order, each with its matches, the closest first.
        rows: how many the first list has.
        recall: share of the true matches that the search found, by a sample; ``None``: all; NaN: the sample has none.
        sampled: how many matches the sample has.
        anew: what :meth:`at` does.
    """

    threshold: float
    pairs: list[Match]
    rows: int
    recall: float | None
    sampled: int
    anew: Callable[[float], Matched]

    @property
    def unmatched(self) -> Indices:
        """Places of the rows of the first list that have no match, ascending."""
        return np.setdiff1d(np.arange(self.rows), [pair.row for pair in self.pairs])

    def at(self, threshold: float) -> Matched:
        """Return the matches at another threshold; nothing is encoded, and what was found is searched only once."""
        check_threshold(threshold)
        return self.anew(threshold)

    def __str__(self) -> str:
        """Return how many rows have a match."""
        matched = self.rows - len(self.unmatched)
        found = share_found(self.recall, self.sampled, "matches")
        return f"{matched} of {self.rows} texts matched at a cosine of {self.threshold:.4g} or more{found}"


def check_top(top: int, *, one_to_one: bool) -> None:
    """Raise ConfigError for a number of matches that :func:`match` cannot be asked for."""
    if top < 1 or (one_to_one and top > 1):
        raise ConfigError(
            f"A row has one match or more, and one only where none is matched twice; received `top` {top}"
            f"{' and `one_to_one`' if one_to_one else ''}."
        )


def match(
    texts: Sequence[str],
    others: Sequence[str],
    model: Model,
    threshold: float,
    *,
    top: int = 1,
    one_to_one: bool = False,
    search: Search = "auto",
    work: Path | None = None,
) -> Matched:
    """Find for each text of one list the closest of another, at a threshold or above.

    Of each text the :data:`~samesense.inference.duplicates.links.LINKS_PER_ROW` closest are looked at, or ``top`` if
    that is more. Rows that tie are in the order of the second list.

    Args:
        texts: of the first list, one a row.
        others: of the second.
        model: encodes them, equal ones once.
        threshold: lowest cosine of a match, from -1 to 1.
        top: matches of a row at most.
        one_to_one: match no row of the second list twice: the closest two rows first, then the closest of the rest.
        search: compare all pairs, or only those of the closest lists of near rows; ``"auto"`` does the latter above
            :data:`~samesense.inference.duplicates.dedup.EXACT_ROWS` of its texts.
        work: folder that keeps vectors and links, for other thresholds of the same texts.

    Raises:
        ConfigError: if the threshold is no cosine, or ``top`` does not fit.
        ModelError: if a vector is not finite or all zeros.
        OutputError: if ``work`` holds something else.
    """
    check_threshold(threshold)
    check_top(top, one_to_one=one_to_one)
    first, second = distinct(texts), distinct(others)
    count, approximate = max(LINKS_PER_ROW, top), approximately(search, len(second.texts))
    here = len(first.texts)
    what = f"match, {'approximate' if approximate else 'exact'}, {here} texts, {count} each"
    made = open_work(work, what, model, [*first.texts, *second.texts])

    def at(cut: float) -> Matched:
        floor = cut if work is None else max(-1.0, cut - ROOM)
        find = _approximate if approximate else _exact
        links = made.links(cut, lambda vectors: find(vectors, here, floor, count))
        pairs = _one_to_one(links, cut, first, second) if one_to_one else _closest(links, cut, first, second, top)
        return Matched(threshold=cut, pairs=pairs, rows=len(texts), recall=links.recall, sampled=links.sampled, anew=at)

    return at(threshold)


def _exact(vectors: Embeddings, here: int, floor: float, count: int) -> Links:
    """Return the ``count`` closest of the rows from ``here`` on, for each row before it."""
    best = [Best(count) for _ in range(here)]
    for ids, rows in blocks(vectors[:here]):
        nearest(unit_rows(rows), lambda: blocks(vectors[here:]), [best[row] for row in ids], count)
    first = np.repeat(np.arange(here), [len(one.ids) for one in best])
    second = np.concatenate([np.zeros(0, dtype=np.int64), *(one.ids for one in best)])
    scores = np.concatenate([np.zeros(0), *(one.scores for one in best)])
    kept = scores >= floor
    return Links(first[kept], second[kept], scores[kept], np.full(len(vectors), -np.inf), floor)


def _approximate(vectors: Embeddings, here: int, floor: float, count: int) -> Links:
    """Return about the same, by the lists closest to each row; scores are exact, the recall measured."""
    lists = make_lists(vectors[:here], vectors[here:], floor, count)
    kept = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))]
    for near in near_in_lists(lists, floor):
        for part in parts(near):
            scores = row_cosines(vectors[part.first], vectors[here + part.second])
            close = scores >= floor
            kept.append((part.first[close], part.second[close], scores[close]))
    first, second, scores = (np.concatenate(part) for part in zip(*kept, strict=True))
    order = np.lexsort((second, -scores, first))
    rank = np.arange(len(order)) - np.searchsorted(first[order], first[order])
    best = order[rank < count]
    beyond = np.full(len(vectors), -np.inf)
    return Links(first[best], second[best], scores[best], beyond, floor, lists.recall, lists.sampled)


def _closest(links: Links, threshold: float, first: Distinct, second: Distinct, top: int) -> list[Match]:
    """Return for each row of the first list its matches, ``top`` at most, the closest first, then by row."""
    of_text: list[list[Match]] = [[] for _ in first.texts]
    copies = _rows(second)
    for text, other, score in _at(links, threshold):
        rows = copies[other][: top - len(of_text[text])].tolist()
        of_text[text] += [Match(0, row, score) for row in rows]
    return [one._replace(row=row) for row, text in enumerate(first.of_row.tolist()) for one in of_text[text]]


def _one_to_one(links: Links, threshold: float, first: Distinct, second: Distinct) -> list[Match]:
    """Return matches that share no row, the closest first; a row whose matches are all taken has none.

    Of those that tie, rows of the first list go in their order, and each takes the first of the second that is left.
    Copies of texts wait in queues, since their pairs may be many.
    """
    waiting, free = ([deque(rows.tolist()) for rows in _rows(texts)] for texts in (first, second))
    found: list[Match] = []
    for score, tied in groupby(sorted(_at(links, threshold), key=lambda link: -link[2]), key=lambda link: link[2]):
        others: dict[int, list[int]] = {}
        for text, other, _ in tied:
            others.setdefault(text, []).append(other)
        ready = [(waiting[text][0], text) for text in others if waiting[text]]
        heapify(ready)
        while ready:
            row, text = heappop(ready)
            left = [free[other] for other in others[text] if free[other]]
            if left:
                found.append(Match(row, min(left, key=lambda rows: rows[0]).popleft(), score))
                waiting[text].popleft()
                if waiting[text]:
                    heappush(ready, (waiting[text][0], text))
    return sorted(found)


def _at(links: Links, threshold: float) -> Iterator[tuple[int, int, float]]:
    """Yield the links at the threshold: those of a text together, the closest first, then by the other text."""
    order = np.lexsort((links.second, -links.scores, links.first))
    close = order[links.scores[order] >= threshold]
    yield from zip(*(part[close].tolist() for part in (links.first, links.second, links.scores)), strict=True)


def _rows(texts: Distinct) -> list[Indices]:
    """Return of each text the rows that have it, ascending."""
    return np.split(np.argsort(texts.of_row, kind="stable"), np.cumsum(texts.copies)[:-1])
