"""Splits labelled pairs in two, or into folds, so that no sentence, or no pair, is in two of them.

Pairs that share sentences, directly or through other pairs, stay together. Texts are compared without case and
punctuation. The split depends on the seed and the sentences, not on the order of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter
from typing import Literal

import numpy as np
import numpy.typing as npt

from samesense.data.mapped import iterate_rows
from samesense.data.pairs.keys import Groups, components, group_equal, pair_key, pair_keys, plain_keys
from samesense.hashes import json_hash
from samesense.types import Floats

Apart = Literal["sentences", "pairs"]
"""What two splits must not share: a sentence, or a pair in either order."""

MOST_STRATA = 5
"""Most strata: labels, or ranges of labels, whose frequencies a split should keep."""

Flags = npt.NDArray[np.bool_]


def group_pairs(first: Sequence[str], second: Sequence[str], apart: Apart) -> Groups:
    """Return the group of each pair; the pairs of a group must stay together."""
    keys = plain_keys(first), plain_keys(second)
    if apart == "sentences":
        return components(*keys)
    return group_equal(pair_keys(*keys))


def choose_held_out(
    first: Sequence[str],
    second: Sequence[str],
    labels: Sequence[float],
    groups: Groups,
    target: int,
    limit: int,
    seed: int,
) -> Flags:
    """Return which pairs are held out ``(pairs,)``: about ``target`` pairs and at most ``limit``, in whole groups.

    Groups are drawn at random. Groups that would hold out too many pairs of a stratum of labels come last.
    """
    strata = find_strata(labels)
    content = _stratum_counts(groups, strata)
    # Number of pairs that each stratum may still give, in proportion to its size.
    room = np.ceil(np.bincount(strata) * target / max(1, len(groups))).astype(int)
    is_held_out = np.zeros(len(content), bool)
    count = 0
    postponed: list[int] = []
    order = shuffle_groups(first, second, groups, seed).tolist()
    sizes = content.sum(axis=1).tolist()
    for group in order:
        if count >= target:
            break
        # A smaller group may still fit.
        if count + sizes[group] > limit:
            continue
        if (content[group] > room).any():
            postponed.append(group)
            continue
        is_held_out[group] = True
        room -= content[group]
        count += sizes[group]
    # Labels may be out of proportion, rather than too few pairs be held out.
    for group in postponed:
        if count < target and count + sizes[group] <= limit:
            is_held_out[group] = True
            count += sizes[group]
    return is_held_out[groups]


def assign_folds(
    first: Sequence[str], second: Sequence[str], labels: Sequence[float], groups: Groups, count: int, seed: int
) -> Groups:
    """Return the fold of each pair ``(pairs,)``, from 0; folds are similar in size and labels, and keep groups whole.

    The largest groups are assigned first, each to the fold that has the least of its labels so far; groups of equal
    size come in random order.
    """
    content = _stratum_counts(groups, find_strata(labels)).astype(np.float64)
    content = np.column_stack([content, content.sum(axis=1)])  # balances sizes as well as labels
    # Counts relative to the total of each stratum, so that rare labels matter as much as frequent ones.
    weights = 1 / np.maximum(content.sum(axis=0), 1) ** 2
    drawn = shuffle_groups(first, second, groups, seed)
    # Stable, so that groups of equal size stay in random order.
    order = drawn[np.argsort(-content[drawn, -1], kind="stable")]
    fold_content = np.zeros((count, content.shape[1]))
    fold = np.zeros(len(content), np.intp)
    for group, group_content in zip(order.tolist(), content[order], strict=True):
        least = int((fold_content @ (group_content * weights)).argmin())
        fold[group] = least
        fold_content[least] += group_content
    return fold[groups]


def shuffle_groups(first: Sequence[str], second: Sequence[str], groups: Groups, seed: int) -> Groups:
    """Return the groups in random order, by a hash of the alphabetically first pair of each."""
    order = np.argsort(groups, kind="stable")
    rows = groupby(zip(groups[order], iterate_rows([first, second], order), strict=True), key=itemgetter(0))
    # The first in the alphabet, because no row comes first whatever the order of the file.
    pairs = (min(pair_key(*pair) for _, pair in group_rows) for _, group_rows in rows)
    # The first 64 bits of SHA-256, the same in every process.
    hashes = np.fromiter((int(json_hash([seed, *pair])[:16], 16) for pair in pairs), np.uint64)
    return np.argsort(hashes, kind="stable")


def find_strata(labels: Sequence[float] | Floats) -> Groups:
    """Return the stratum of each pair ``(pairs,)``: its label, or a range of labels if there are many."""
    values = np.asarray(labels, dtype=np.float64)
    distinct, number = np.unique(values, return_inverse=True)
    if len(distinct) <= MOST_STRATA:
        return number
    edges = np.unique(np.quantile(values, np.arange(1, MOST_STRATA) / MOST_STRATA))
    return np.searchsorted(edges, values, side="right")


def _stratum_counts(groups: Groups, strata: Groups) -> Groups:
    """Return the number of pairs by group and stratum, ``(groups, strata)``."""
    width = int(strata.max(initial=0)) + 1
    counts = np.bincount(groups * width + strata, minlength=(int(groups.max(initial=-1)) + 1) * width)
    return counts.reshape(-1, width)
