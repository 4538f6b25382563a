"""Sentences of a heatmap: pairs out of the evaluated data, from the most to the least similar by their labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from samesense.data.conventions.numbers import number_text
from samesense.data.pairs.data import PairData
from samesense.data.rows.load import TEXT, line_rows
from samesense.errors import DataError
from samesense.evaluation.task import Task
from samesense.reports.figures.heatmap import MOST_SENTENCES, SHOWN_CHARS
from samesense.types import Pair

PAIRS = 6
"""Pairs that are taken."""


@dataclass(frozen=True)
class Sentences:
    """Sentences by group, and where they are from, in words."""

    groups: Sequence[Sequence[str]]
    origin: str


def own_sentences(tasks: Sequence[Task]) -> Sentences:
    """Return pairs of the first evaluated set of labelled pairs, spread over its labels; none where there is no set.

    Pairs that a heatmap shows whole come first. No text occurs twice. Equal labels keep the order of the rows.
    """
    data = next((pair_data for task in tasks if isinstance(pair_data := getattr(task, "data", None), PairData)), None)
    if data is None:
        return Sentences((), "")
    pairs = data.pairs()
    rows = [index for index, pair in enumerate(pairs) if max(map(len, pair)) <= SHOWN_CHARS]
    # Too few short pairs: the heatmap cuts the sentences of long ones.
    if len(rows) < PAIRS:
        rows = list(range(len(pairs)))
    chosen = _spread(pairs, sorted(rows, key=lambda index: -data.labels[index]))
    labels = ", ".join(number_text(data.labels[index]) for index in chosen)
    return Sentences([pairs[index] for index in chosen], f"pairs of {data.name}, whose labels are {labels}")


def _spread(pairs: Sequence[Pair], rows: Sequence[int]) -> list[int]:
    """Return rows at even places of the given ones, or the next row behind them whose texts are new."""
    taken: set[str] = set()
    chosen: list[int] = []
    for number in range(min(PAIRS, len(rows))):
        start = number * (len(rows) - 1) // max(1, PAIRS - 1)
        for index in rows[start:]:
            pair = pairs[index]
            if pair[0] != pair[1] and not taken & set(pair):
                taken |= set(pair)
                chosen.append(index)
                break
    return chosen


def read_topics(path: Path) -> Sentences:
    """Read sentences for the heatmap: one a line, an empty line between topics."""
    topics: list[list[str]] = [[]]
    for _, cells in line_rows(path, blank_end=True):
        sentence = str(cells[TEXT]).strip()
        if sentence:
            topics[-1].append(sentence)
        elif topics[-1]:
            topics.append([])
    topics = [topic for topic in topics if topic]
    count = sum(map(len, topics))
    if not 2 <= count <= MOST_SENTENCES:
        raise DataError(f"{path}: a heatmap shows 2 to {MOST_SENTENCES} sentences, one a line; received {count}.")
    return Sentences(topics, f"sentences of {path.name}, by topic")
