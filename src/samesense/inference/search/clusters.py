"""Near-duplicates: texts that are linked by close pairs, exactly and in memory that grows with the texts alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from samesense.errors import ConfigError
from samesense.inference.search.exact import Ids, margin, row_cosines, unit_rows
from samesense.inference.search.mining import Near, check_threshold, near_pairs, pair_cosines, parts

BLOCK_MEMBERS = 4096


@dataclass(frozen=True)
class Cluster:
    """Texts that are linked: each is close to some other of them, not necessarily to all.

    Attributes:
        members: their places from 0, ascending.
        centre: place of the member nearest to the mean of all, the lower of two that tie.
        lowest: lowest cosine of a member with the centre. Far below the threshold it tells of a chain.
    """

    members: tuple[int, ...]
    centre: int
    lowest: float


def cluster(vectors: npt.NDArray[np.floating], threshold: float, *, smallest: int = 2) -> list[Cluster]:
    """Return the connected components of the graph whose edges are the pairs with a cosine of ``threshold`` or more.

    The outcome depends on the vectors ``(texts, dim)`` alone, not on blocks or chance; it is single-linkage clustering,
    cut at the threshold. The largest cluster comes first, of equal ones that with the lowest place; those of fewer than
    ``smallest`` texts are left out. Time grows with the square of the texts. ModelError for a row that is not finite or
    all zeros.
    """
    check_arguments(threshold, smallest)
    labels = np.arange(len(vectors), dtype=np.int64)
    for near in near_pairs(vectors, lambda: threshold):
        labels = _linked(labels, vectors, near, threshold)
    order = np.argsort(labels, kind="stable")
    cuts = np.flatnonzero(np.diff(labels[order])) + 1
    groups = [group for group in np.split(order, cuts) if len(group) >= smallest]
    groups.sort(key=lambda group: (-len(group), int(group[0])))
    return [_described(vectors, group) for group in groups]


def check_arguments(threshold: float, smallest: int) -> None:
    """Refuse what :func:`cluster` cannot be asked for, before anything is encoded for it."""
    check_threshold(threshold)
    if smallest < 1:
        raise ConfigError(f"A cluster has one member or more; received {smallest}. Example: 2")


def _linked(labels: Ids, vectors: npt.NDArray[np.floating], near: Near, threshold: float) -> Ids:
    """Return the labels, each the lowest place of its component, after linking pairs that reach the threshold."""
    near = near.take(labels[near.first] != labels[near.second])
    sure = near.scores >= threshold + margin(vectors.shape[1])
    labels = _joined(labels, near.take(sure))
    doubtful = near.take(~sure)
    doubtful = doubtful.take(labels[doubtful.first] != labels[doubtful.second])
    for part in parts(doubtful):
        labels = _joined(labels, part.take(pair_cosines(vectors, part) >= threshold))
    return labels


def _joined(labels: Ids, links: Near) -> Ids:
    """Return the labels after joining the components of the linked rows."""
    if not len(links.first):
        return labels
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    ends = np.stack([labels[links.first], labels[links.second]])
    names, places = np.unique(ends, return_inverse=True)
    one, other = places.reshape(ends.shape)
    graph = coo_array((np.ones(len(one), dtype=np.int8), (one, other)), shape=(len(names), len(names)))
    count, component = connected_components(graph, directed=False)
    lowest = np.full(count, len(labels), dtype=np.int64)
    np.minimum.at(lowest, component, names)
    new = np.arange(len(labels), dtype=np.int64)
    new[names] = lowest[component]
    joined: Ids = new[labels]
    return joined


def _described(vectors: npt.NDArray[np.floating], members: npt.NDArray[np.intp]) -> Cluster:
    blocks = [members[start : start + BLOCK_MEMBERS] for start in range(0, len(members), BLOCK_MEMBERS)]
    total = np.zeros(vectors.shape[1], dtype=np.float64)
    for block in blocks:
        total += unit_rows(vectors[block]).astype(np.float64).sum(axis=0)
    nearness = np.concatenate([row_cosines(total[None], vectors[block]) for block in blocks])
    centre = int(members[int(np.argmax(nearness))])
    own = vectors[centre : centre + 1]
    lowest = min(float(row_cosines(own, vectors[block]).min()) for block in blocks)
    return Cluster(tuple(int(place) for place in members), centre, lowest)
