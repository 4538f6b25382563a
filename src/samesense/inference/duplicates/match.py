"""For each text of one list the closest of another."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from samesense.encoder.cosine import row_cosines
from samesense.encoder.windows import Chunk
from samesense.errors import ConfigError
from samesense.inference.duplicates.dedup import ROOM, Distinct, Search, approximately, distinct
from samesense.inference.duplicates.links import LINKS_PER_ROW, Links, share_found
from samesense.inference.duplicates.unlike import Unlike
from samesense.inference.duplicates.work import open_work
from samesense.inference.models.model import Model
from samesense.inference.search.exact import Best, nearest, unit_rows
from samesense.inference.search.lists import blocks, make_lists, near_in_lists
from samesense.inference.search.mining import check_threshold, parts
from samesense.inference.search.ties import groups, in_order, same_as
from samesense.results import ShownRows
from samesense.types import Embeddings, Indices, TaskName


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


@dataclass(frozen=True, kw_only=True, repr=False)
class Matched(ShownRows):
    """What was found of one list in another. Prints as a line.

    Attributes:
        threshold: lowest cosine of a match.
        pairs: rows of the first list in their order, each with its matches, the closest first.
        rows: how many the first list has.
        recall: share of the true matches that the search found, by a sample; ``None``: all; NaN: the sample has none.
        sampled: how many matches the sample has.
        unmerged: rows of the first list that are close to one of the second and are not matched with it, since the two
            differ in what the model did not read: behind the cut, or unknown to its tokenizer.
        anew: what :meth:`at` does.
    """

    threshold: float
    pairs: list[Match]
    rows: int
    recall: float | None
    sampled: int
    unmerged: Indices
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
        recall_text = share_found(self.recall, self.sampled, "matches")
        message = f"{matched} of {self.rows} texts matched at a cosine of {self.threshold:.4g} or more{recall_text}"
        left = len(self.unmerged)
        return f"{message}; {left} are close to others that differ in what the model did not read" if left else message

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the matches, each a row of either list and their cosine."""
        return [pair._asdict() for pair in self.pairs]

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain JSON types."""
        measured = self.recall is not None and self.sampled > 0
        return {
            "texts": self.rows, "matched": self.rows - len(self.unmatched), "matches": len(self.pairs),
            "unmerged": len(self.unmerged), "threshold": self.threshold, "recall": self.recall if measured else None,
            "sampled": self.sampled,
        }  # fmt: skip


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
    chunk: Chunk | None = None,
) -> Matched:
    """Find for each text of one list the closest of another, at a threshold or above.

    Of each text the :data:`~samesense.inference.duplicates.links.LINKS_PER_ROW` closest are looked at, or ``top`` if
    that is more. Rows that tie are in the order of the second list.

    A model that tells queries from documents reads the first list as queries.

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
        chunk: what is taken of the windows of texts that are longer than what the model reads; ``None`` cuts them.

    Raises:
        ConfigError: if the threshold is no cosine, or ``top`` does not fit.
        ModelError: if a vector is not finite or all zeros.
        OutputError: if ``work`` holds something else.
    """
    check_threshold(threshold)
    check_top(top, one_to_one=one_to_one)
    first, second = distinct(texts), distinct(others)
    count, approximate = LINKS_PER_ROW + top, approximately(search, len(second.texts))
    here = len(first.texts)
    what = f"match, {'approximate' if approximate else 'exact'}, {here} texts, {count} each"
    both = [*first.texts, *second.texts]
    apart = model.tells_tasks_apart
    work_folder = open_work(work, what, model, both, chunk, here if apart else None)
    readings = [model.reading_for(task) for task in get_args(TaskName)] if apart else [model.reading]
    unlike = Unlike(both, *readings, in_windows=chunk is not None)
    same = np.full(here, -1) if apart else _same_texts(first, second)

    def at(cut: float) -> Matched:
        floor = cut if work is None else max(-1.0, cut - ROOM)
        find = _approximate if approximate else _exact
        links = work_folder.links(cut, lambda vectors: find(vectors, here, floor, count))
        links, left = _alike(links, cut, unlike, here)
        links = _with_same(links, same)
        pairs = _one_to_one(links, first, second, same) if one_to_one else _closest(links, first, second, top)
        return Matched(
            threshold=cut, pairs=pairs, rows=len(texts), recall=links.recall, sampled=links.sampled,
            unmerged=np.flatnonzero(np.isin(first.of_row, left)), anew=at,
        )  # fmt: skip

    return at(threshold)


def _same_texts(first: Distinct, second: Distinct) -> Indices:
    """Return of each text of the first list its place in the second, -1 if it is not there ``(texts,)``."""
    position = {text: number for number, text in enumerate(second.texts)}
    return np.array([position.get(text, -1) for text in first.texts], dtype=np.int64)


def _alike(links: Links, threshold: float, unlike: Unlike, here: int) -> tuple[Links, Indices]:
    """Return the links at the threshold without those of texts that are unlike, and the first texts of the latter."""
    close = np.flatnonzero(links.scores >= threshold)
    apart = unlike(links.first[close], here + links.second[close])
    retained = close[~apart]
    alike = replace(links, first=links.first[retained], second=links.second[retained], scores=links.scores[retained])
    return alike, np.unique(links.first[close[apart]])


def _with_same(links: Links, same: Indices) -> Links:
    """Return the links with one of each text to itself in the second list, whose cosine is 1."""
    there = np.flatnonzero(same >= 0)
    differs = same[links.first] != links.second
    return replace(
        links,
        first=np.concatenate([there, links.first[differs]]),
        second=np.concatenate([same[there], links.second[differs]]),
        scores=np.concatenate([np.ones(len(there)), links.scores[differs]]),
    )


def _exact(vectors: Embeddings, here: int, floor: float, count: int) -> Links:
    """Return the ``count`` closest of the rows from ``here`` on, for each row before it."""
    best = [Best(count) for _ in range(here)]
    for ids, rows in blocks(vectors[:here]):
        nearest(unit_rows(rows), lambda: blocks(vectors[here:]), [best[row] for row in ids], count)
    first = np.repeat(np.arange(here), [len(row_best.ids) for row_best in best])
    second = np.concatenate([np.zeros(0, dtype=np.int64), *(row_best.ids for row_best in best)])
    scores = np.concatenate([np.zeros(0), *(row_best.scores for row_best in best)])
    above = scores >= floor
    return Links(first[above], second[above], scores[above], np.full(len(vectors), -np.inf), floor)


def _approximate(vectors: Embeddings, here: int, floor: float, count: int) -> Links:
    """Return about the same, by the lists closest to each row; scores are exact, the recall measured."""
    lists = make_lists(vectors[:here], vectors[here:], floor, count)
    matches = [(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0))]
    for near in near_in_lists(lists, floor):
        for block in parts(near):
            scores = row_cosines(vectors[block.first], vectors[here + block.second])
            close = scores >= floor
            matches.append((block.first[close], block.second[close], scores[close]))
    first, second, scores = (np.concatenate(block) for block in zip(*matches, strict=True))
    order = np.lexsort((second, -scores, first))
    rank = np.arange(len(order)) - np.searchsorted(first[order], first[order])
    best = order[rank < count]
    beyond = np.full(len(vectors), -np.inf)
    return Links(first[best], second[best], scores[best], beyond, floor, lists.recall, lists.sampled)


def _closest(links: Links, first: Distinct, second: Distinct, top: int) -> list[Match]:
    """Return for each row of the first list its matches, ``top`` at most, the closest first, then by row."""
    of_text: list[list[Match]] = [[] for _ in first.texts]
    copies = _rows(second)
    for text, candidate, score in _at(links, first, second):
        rows = copies[candidate][: top - len(of_text[text])].tolist()
        of_text[text] += [Match(0, row, score) for row in rows]
    return [entry._replace(row=row) for row, text in enumerate(first.of_row.tolist()) for entry in of_text[text]]


def _one_to_one(links: Links, first: Distinct, second: Distinct, own: Indices) -> list[Match]:
    """Return matches that share no row, the closest first; a row whose matches are all taken has none.

    Rows with the same text are matched before any others. Of those that tie, rows of the first list go in their order,
    and each takes the first of the second that is left. Copies of texts wait in queues, since their pairs may be many.
    """
    waiting, free = ([deque(rows.tolist()) for rows in _rows(texts)] for texts in (first, second))
    matches: list[Match] = []
    for tied in _tied(list(_at(links, first, second)), own.tolist()):
        candidates: dict[int, dict[int, float]] = {}
        for text, candidate, score in tied:
            candidates.setdefault(text, {})[candidate] = score
        ready = [(waiting[text][0], text) for text in candidates if waiting[text]]
        heapify(ready)
        while ready:
            row, text = heappop(ready)
            left = [candidate for candidate in candidates[text] if free[candidate]]
            if left:
                candidate = min(left, key=lambda candidate: free[candidate][0])
                matches.append(Match(row, free[candidate].popleft(), candidates[text][candidate]))
                waiting[text].popleft()
                if waiting[text]:
                    heappush(ready, (waiting[text][0], text))
    return sorted(matches)


def _at(links: Links, first: Distinct, second: Distinct) -> Iterator[tuple[int, int, float]]:
    """Yield the links of each text together, in the order of :mod:`samesense.inference.search.ties`."""
    order = np.lexsort((links.second, -links.scores, links.first))
    starts = np.flatnonzero(np.diff(links.first[order], prepend=-1))
    for indices in np.split(order, starts[1:]) if len(order) else ():
        text = int(links.first[indices[0]])
        candidates, scores = links.second[indices], links.scores[indices]
        if len(indices) > 1:
            ranking = in_order(
                scores, candidates, same_as(first.texts[text], [second.texts[candidate] for candidate in candidates])
            )
            candidates, scores = candidates[ranking], scores[ranking]
        yield from (
            (text, candidate, score) for candidate, score in zip(candidates.tolist(), scores.tolist(), strict=True)
        )


def _tied(links: list[tuple[int, int, float]], own: list[int]) -> Iterator[list[tuple[int, int, float]]]:
    """Yield groups of links that tie, the closest first, and before all those of a text to its ``own`` place."""
    same = [link for link in links if own[link[0]] == link[1]]
    if same:
        yield same
    remaining = sorted((link for link in links if own[link[0]] != link[1]), key=lambda link: -link[2])
    numbers = groups(np.array([score for _, _, score in remaining])).tolist()
    for _, tied in groupby(zip(numbers, remaining, strict=True), key=lambda numbered: numbered[0]):
        yield [link for _, link in tied]


def _rows(texts: Distinct) -> list[Indices]:
    """Return of each text the rows that have it, ascending."""
    return np.split(np.argsort(texts.of_row, kind="stable"), np.cumsum(texts.copies)[:-1])
