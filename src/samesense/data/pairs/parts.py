"""Parts of labelled pairs between which no sentence, or no pair, is shared: a part held out, and folds.

Pairs that hang together by their sentences, directly or through others, stand in one part. Texts count as one whatever
their case and punctuation. What is chosen depends on the seed and the sentences, not on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Literal

import numpy as np
import numpy.typing as npt

from samesense.data.mapped import in_order
from samesense.data.pairs.keys import Groups, components, pair_key, pair_keys, plain_keys, same
from samesense.hashes import json_hash
from samesense.types import Floats

Apart = Literal["sentences", "pairs"]
"""What parts do not share: a sentence, or a pair in either order."""

MOST_STRATA = 5
"""Labels, or ranges of labels, that are to be as frequent in a part as in the whole."""

Flags = npt.NDArray[np.bool_]


def grouped(first: Sequence[str], second: Sequence[str], apart: Apart) -> Groups:
    """Return the group of each pair: those of one group must not be divided."""
    keys = plain_keys(first), plain_keys(second)
    return components(*keys) if apart == "sentences" else same(pair_keys(*keys))


def held_part(
    first: Sequence[str],
    second: Sequence[str],
    labels: Sequence[float],
    groups: Groups,
    wanted: int,
    most: int,
    seed: int,
) -> Flags:
    """Return which pairs are held out ``(pairs,)``: about ``wanted`` of them, whole groups, at most ``most`` pairs.

    Groups are drawn at random. Those that would hold out more than its share of a range of labels come last.
    """
    strata = strata_of(labels)
    content = _contents(groups, strata)
    room = np.ceil(np.bincount(strata) * wanted / max(1, len(groups))).astype(int)
    held, count = np.zeros(len(content), bool), 0
    passed: list[int] = []
    drawn = drawn_order(first, second, groups, seed).tolist()
    sizes = content.sum(axis=1).tolist()
    for group in drawn:
        if count >= wanted:
            break
        if count + sizes[group] > most:
            continue
        if (content[group] > room).any():
            passed.append(group)
            continue
        held[group] = True
        room -= content[group]
        count += sizes[group]
    for group in passed:
        if count < wanted and count + sizes[group] <= most:
            held[group] = True
            count += sizes[group]
    return held[groups]


def fold_of_each(
    first: Sequence[str], second: Sequence[str], labels: Sequence[float], groups: Groups, count: int, seed: int
) -> Groups:
    """Return the number of the fold of each pair ``(pairs,)``, from 0: of like size, with like labels, whole groups.

    The largest groups are dealt first, each to the fold that has least of what it holds; equal ones in random order.
    """
    content = _contents(groups, strata_of(labels)).astype(np.float64)
    content = np.column_stack([content, content.sum(axis=1)])  # sizes count beside labels
    weights = 1 / np.maximum(content.sum(axis=0), 1) ** 2
    drawn = drawn_order(first, second, groups, seed)
    order = drawn[np.argsort(-content[drawn, -1], kind="stable")]
    held = np.zeros((count, content.shape[1]))
    fold = np.zeros(len(content), np.intp)
    for group, own in zip(order.tolist(), content[order], strict=True):
        least = int((held @ (own * weights)).argmin())
        fold[group] = least
        held[least] += own
    return fold[groups]


def drawn_order(first: Sequence[str], second: Sequence[str], groups: Groups, seed: int) -> Groups:
    """Return the groups in random order, by the first of the pairs of each."""
    order = np.argsort(groups, kind="stable")
    rows = groupby(zip(groups[order], in_order([first, second], order), strict=True), key=itemgetter(0))
    pairs = (min(pair_key(*own) for _, own in of_group) for _, of_group in rows)
    drawn = np.fromiter((int(json_hash([seed, *pair])[:16], 16) for pair in pairs), np.uint64)
    return np.argsort(drawn, kind="stable")


def strata_of(labels: Sequence[float] | Floats) -> Groups:
    """Return the number of the label of each pair ``(pairs,)``, or of its range where there are many labels."""
    values = np.asarray(labels, dtype=np.float64)
    different, number = np.unique(values, return_inverse=True)
    if len(different) <= MOST_STRATA:
        return number
    edges = np.unique(np.quantile(values, np.arange(1, MOST_STRATA) / MOST_STRATA))
    return np.searchsorted(edges, values, side="right")


def _contents(groups: Groups, strata: Groups) -> Groups:
    """Return how many pairs of each stratum a group holds, ``(groups, strata)``."""
    width = int(strata.max(initial=0)) + 1
    counts = np.bincount(groups * width + strata, minlength=(int(groups.max(initial=-1)) + 1) * width)
    return counts.reshape(-1, width)
