"""Match the texts of one list with the closest texts of another."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np

from samesense.choices import Chunk, SearchMethod, check_count
from samesense.encoder.cosine import row_cosines
from samesense.errors import ConfigError
from samesense.inference.duplicates.dedup import Distinct, approximately, distinct
from samesense.inference.duplicates.link_shards import search_in_lists
from samesense.inference.duplicates.links import LINKS_PER_ROW, Links, ListSearch, RangeLinks, share_found
from samesense.inference.duplicates.thresholded import Thresholded
from samesense.inference.duplicates.unlike import Unlike
from samesense.inference.duplicates.vector_shards import Sharing
from samesense.inference.duplicates.work import Search, open_work
from samesense.inference.models.model import Model
from samesense.inference.search.exact import Best, nearest, unit_rows
from samesense.inference.search.lists import Lists, blocks, near_in_lists
from samesense.inference.search.mining import check_threshold, pair_blocks
from samesense.inference.search.ties import groups, in_order, same_as
from samesense.types import Embeddings, Indices, Scores, TaskName


class Match(NamedTuple):
    """A row of the first list and a row of the second list that match.

    Attributes:
        row: index in the first list, from 0.
        match: index in the second list.
        score: their cosine, in [-1, 1]; 1 for equal texts.
    """

    row: int
    match: int
    score: float


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Matched(Thresholded):
    """The matches of one list in another. Prints as a line.

    Attributes:
        threshold: lowest cosine of a match.
        pairs: the matches, in the order of the rows of the first list, the closest match of a row first.
        rows: number of rows of the first list.
        recall: share of the true matches that the search found, measured on a sample; ``None`` if the search was exact,
            NaN if the sample has no match.
        sampled: number of matches in the sample.
        unmerged: rows of the first list that are close to a row of the second and not matched with it, because the two
            differ in what the model did not read: after the truncation, or unknown to its tokenizer.
    """

    pairs: list[Match]
    rows: int

    @property
    def unmatched(self) -> Indices:
        """Indices of the rows of the first list without a match, ascending."""
        return np.setdiff1d(np.arange(self.rows), [pair.row for pair in self.pairs])

    def __str__(self) -> str:
        """Return how many rows have a match, as a line of text."""
        matched = self.rows - len(self.unmatched)
        recall_text = share_found(self.recall, self.sampled, "matches")
        message = f"{matched} of {self.rows} texts matched at a cosine of {self.threshold:.4g} or more{recall_text}"
        unmerged = len(self.unmerged)
        if unmerged:
            message += f"; {unmerged} are close to others that differ in what the model did not read"
        return message

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the matches, each with a row of either list and their cosine."""
        return [pair._asdict() for pair in self.pairs]

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain JSON types."""
        return {
            "texts": self.rows,
            "matched": self.rows - len(self.unmatched),
            "matches": len(self.pairs),
            **self.search_to_dict(),
        }


def check_top(top: int, *, one_to_one: bool) -> None:
    """Raise ConfigError for a number of matches that :func:`match` does not accept."""
    check_count("top", top)
    if one_to_one and top > 1:
        raise ConfigError(
            f"A row has one match only where none is matched twice; received `top` {top} and `one_to_one`."
        )


def match(  # noqa: PLR0913 - the options of the command
    texts: Sequence[str],
    second_texts: Sequence[str],
    model: Model,
    threshold: float,
    *,
    top: int = 1,
    one_to_one: bool = False,
    search: SearchMethod = "auto",
    work: Path | None = None,
    chunk: Chunk | None = None,
    sharing: Sharing | None = None,
) -> Matched:
    """Match each text of one list with the closest texts of another, at a threshold or above.

    Of each text the ``top`` + :data:`~samesense.inference.duplicates.links.LINKS_PER_ROW` closest are candidates. Ties
    keep the order of the second list.

    A model that distinguishes queries from documents reads the first list as queries.

    Args:
        texts: texts of the first list, one a row.
        second_texts: texts of the second list.
        model: encodes the texts, equal ones once.
        threshold: lowest cosine of a match, from -1 to 1.
        top: most matches of a row.
        one_to_one: match no row of the second list twice: the closest two rows first, then the closest of those left.
        search: compare all pairs, or each text with those of the closest lists; ``"auto"`` does the latter above
            :data:`~samesense.inference.duplicates.dedup.EXACT_ROWS` texts in the second list.
        work: folder that keeps vectors and links, for other thresholds of the same texts.
        chunk: how the windows of texts longer than the model reads are combined; ``None`` truncates such texts.
        sharing: shares an approximate search among many workers, whose finished work is in ``work``; ``None`` searches
            in this process, with the same result.

    Raises:
        ConfigError: if the threshold is not a cosine, ``top`` does not fit, or an exact search is to be shared.
        ModelError: if a vector is not finite or all zeros.
        OutputError: if ``work`` holds something else.
    """
    check_threshold(threshold)
    check_top(top, one_to_one=one_to_one)
    first = distinct(texts)
    second = distinct(second_texts)
    count = LINKS_PER_ROW + top
    split = len(first.texts)  # both lists are encoded as one: the second begins at this row
    both = [*first.texts, *second.texts]
    approximate = approximately(search, len(second.texts), shared=sharing is not None)
    kind = "approximate" if approximate else "exact"
    what = f"match, {kind}, {split} texts, {count} each"
    if model.tells_tasks_apart:
        # The same text as query and as document has two vectors, and is not known to match itself.
        readings = [model.reading_for(task) for task in get_args(TaskName)]
        same = np.full(split, -1)
    else:
        readings = [model.reading]
        same = _same_texts(first, second)
    queries = split if model.tells_tasks_apart else None
    work_folder = open_work(work, what, model, both, chunk, queries, sharing)
    unlike = Unlike(both, *readings, in_windows=chunk is not None)

    search_links: Search = partial(_exact, split=split, count=count)
    if approximate:
        list_search = ListSearch(matches_in_lists, merge_matches, count, split)
        search_links = search_in_lists(work_folder, list_search, sharing)

    def at_threshold(level: float) -> Matched:
        links = work_folder.links(level, search_links)
        links, different = _alike(links, level, unlike, split)
        links = _with_same(links, same)
        if one_to_one:
            pairs = _one_to_one(links, first, second, same)
        else:
            pairs = _closest(links, first, second, top)
        return Matched(
            threshold=level,
            pairs=pairs,
            rows=len(texts),
            recall=links.recall,
            sampled=links.sampled,
            unmerged=np.flatnonzero(np.isin(first.of_row, different)),
            recompute=at_threshold,
        )

    return at_threshold(threshold)


def _same_texts(first: Distinct, second: Distinct) -> Indices:
    """Return for each text of the first list its index in the second, -1 if it is not there ``(texts,)``."""
    position = {text: number for number, text in enumerate(second.texts)}
    return np.array([position.get(text, -1) for text in first.texts], dtype=np.int64)


def _alike(links: Links, threshold: float, unlike: Unlike, split: int) -> tuple[Links, Indices]:
    """Return the links at the threshold whose texts do not differ, and the first texts of those that do."""
    close = np.flatnonzero(links.scores >= threshold)
    # The second list stands behind the first one.
    apart = unlike(links.first[close], split + links.second[close])
    retained = close[~apart]
    alike = replace(links, first=links.first[retained], second=links.second[retained], scores=links.scores[retained])
    return alike, np.unique(links.first[close[apart]])


def _with_same(links: Links, same: Indices) -> Links:
    """Return the links with a link of each text to the same text in the second list, whose cosine is 1."""
    shared = np.flatnonzero(same >= 0)
    # Links to the same text are replaced by ones with a cosine of exactly 1.
    differs = same[links.first] != links.second
    return replace(
        links,
        first=np.concatenate([shared, links.first[differs]]),
        second=np.concatenate([same[shared], links.second[differs]]),
        scores=np.concatenate([np.ones(len(shared)), links.scores[differs]]),
    )


def _exact(vectors: Embeddings, floor: float, *, split: int, count: int) -> Links:
    """Return for each row before ``split`` its ``count`` closest among the rows from ``split`` on."""
    best = [Best(count) for _ in range(split)]
    for ids, rows in blocks(vectors[:split]):
        nearest(unit_rows(rows), lambda: blocks(vectors[split:]), [best[row] for row in ids], count)
    first = np.repeat(np.arange(split), [len(row_best.ids) for row_best in best])
    second = np.concatenate([np.zeros(0, dtype=np.int64), *(row_best.ids for row_best in best)])
    scores = np.concatenate([np.zeros(0), *(row_best.scores for row_best in best)])
    above = scores >= floor
    return Links(first[above], second[above], scores[above], np.full(len(vectors), -np.inf), floor)


Matches = tuple[Indices, Indices, Scores]
"""Queries, targets and cosines of matches, each ``(matches,)``."""

_NO_MATCHES: Matches = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0)
"""Matches of nothing: arrays cannot be joined where there is none."""


def matches_in_lists(lists: Lists, numbers: range, floor: float, count: int) -> RangeLinks:
    """Return the links of a range of lists; a query has its ``count`` closest in each range."""
    matches = [_NO_MATCHES]
    for block in (block for near in near_in_lists(lists, floor, numbers) for block in pair_blocks(near)):
        scores = row_cosines(lists.queries[block.first], lists.targets[block.second])
        close = scores >= floor
        matches.append((block.first[close], block.second[close], scores[close]))
    no_rows, _, no_scores = _NO_MATCHES
    return RangeLinks(*_closest_of_each(matches, count), crowded=no_rows, beyond=no_scores)


def merge_matches(ranges: Iterable[RangeLinks], lists: Lists, floor: float, count: int) -> Links:
    """Return the links of all ranges of the lists, the ``count`` closest of each query, with their recall."""
    matches = [_NO_MATCHES, *((links.first, links.second, links.scores) for links in ranges)]
    beyond = np.full(len(lists.queries) + len(lists.targets), -np.inf)
    return Links(*_closest_of_each(matches, count), beyond, floor, lists.recall, lists.sampled)


def _closest_of_each(matches: Sequence[Matches], count: int) -> Matches:
    """Return the ``count`` closest of each query among matches, ties to the first target."""
    first, second, scores = (np.concatenate(block) for block in zip(*matches, strict=True))
    order = np.lexsort((second, -scores, first))
    # The second term is where the row of each link begins.
    rank = np.arange(len(order)) - np.searchsorted(first[order], first[order])
    best = order[rank < count]
    return first[best], second[best], scores[best]


def _closest(links: Links, first: Distinct, second: Distinct, top: int) -> list[Match]:
    """Return for each row of the first list at most ``top`` matches, the closest first, ties by row."""
    of_text: list[list[Match]] = [[] for _ in first.texts]
    copies = _rows(second)
    for text, candidate, score in _ranked(links, first, second):
        rows = copies[candidate][: top - len(of_text[text])].tolist()
        of_text[text] += [Match(0, row, score) for row in rows]
    return [entry._replace(row=row) for row, text in enumerate(first.of_row.tolist()) for entry in of_text[text]]


def _one_to_one(links: Links, first: Distinct, second: Distinct, same: Indices) -> list[Match]:
    """Return matches that share no row, chosen greedily by score; a row whose candidates are all taken has none.

    Rows with the same text are matched before any others. Among ties, rows of the first list go in their order, and
    each takes the first free row of the second list. Copies of texts wait in queues, because their pairs may be many.
    """
    waiting = [deque(rows.tolist()) for rows in _rows(first)]
    free = [deque(rows.tolist()) for rows in _rows(second)]
    matches: list[Match] = []
    for tied in _tied(list(_ranked(links, first, second)), same.tolist()):
        candidates: dict[int, dict[int, float]] = {}
        for text, candidate, score in tied:
            candidates.setdefault(text, {})[candidate] = score
        ready = [(waiting[text][0], text) for text in candidates if waiting[text]]
        heapify(ready)
        while ready:
            row, text = heappop(ready)
            available = [candidate for candidate in candidates[text] if free[candidate]]
            if available:
                candidate = min(available, key=lambda candidate: free[candidate][0])
                matches.append(Match(row, free[candidate].popleft(), candidates[text][candidate]))
                waiting[text].popleft()
                if waiting[text]:
                    heappush(ready, (waiting[text][0], text))
    return sorted(matches)


def _ranked(links: Links, first: Distinct, second: Distinct) -> Iterator[tuple[int, int, float]]:
    """Yield the links text by text, those of a text in the order of :mod:`samesense.inference.search.ties`."""
    order = np.lexsort((links.second, -links.scores, links.first))
    starts = np.flatnonzero(np.diff(links.first[order], prepend=-1))
    if len(order) == 0:
        return
    for indices in np.split(order, starts[1:]):
        text = int(links.first[indices[0]])
        candidates = links.second[indices]
        scores = links.scores[indices]
        if len(indices) > 1:
            ranking = in_order(
                scores, candidates, same_as(first.texts[text], [second.texts[candidate] for candidate in candidates])
            )
            candidates = candidates[ranking]
            scores = scores[ranking]
        yield from (
            (text, candidate, score) for candidate, score in zip(candidates.tolist(), scores.tolist(), strict=True)
        )


def _tied(links: list[tuple[int, int, float]], same: list[int]) -> Iterator[list[tuple[int, int, float]]]:
    """Yield groups of links with equal scores, the closest first; links between equal texts before all others."""
    identical = [link for link in links if same[link[0]] == link[1]]
    if identical:
        yield identical
    remaining = sorted((link for link in links if same[link[0]] != link[1]), key=lambda link: -link[2])
    numbers = groups(np.array([score for _, _, score in remaining])).tolist()
    for _, tied in groupby(zip(numbers, remaining, strict=True), key=lambda numbered: numbered[0]):
        yield [link for _, link in tied]


def _rows(texts: Distinct) -> list[Indices]:
    """Return the rows of each text, ascending."""
    return np.split(np.argsort(texts.of_row, kind="stable"), np.cumsum(texts.copies)[:-1])
