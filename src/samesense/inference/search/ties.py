"""The order of equal scores, the same in every search: first the text that equals the query, then the lower row.

Scores count as equal within a tolerance, because the same text in another batch gives a vector that differs in its last
bits. A text that equals the query comes first even if its score is lower by the noise of the arithmetic.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from samesense.types import Indices, Scores

TIE = 4e-7
"""Scores that differ by less are equal: twice the measured difference of cosines of the same texts in other batches.

In float32 it was 2.0e-7 over 50 queries and 400 texts in batches of 1 to 200 (all-MiniLM-L6-v2, multilingual-e5-small).
"""

NOISE = {"bfloat16": 4e-3, "onnx-int8": 6e-2, "openvino": 8e-7, "openvino-int8": 8e-3, "float16": 7e-4}
"""How far a cosine may vary with the other texts of a batch, by arithmetic; in float32 it is below TIE.

bfloat16: four times the measured 1.1e-3 (all-MiniLM-L6-v2). OpenVINO: twice the measured 3.6e-7, and with the fixed
scales of openvino-int8 twice 3.7e-3, over 350 texts alone and in batches (all-MiniLM-L6-v2). onnx-int8, whose scale
depends on all texts of a batch: the measured 5.7e-2, over 200 texts. Vectors stored in float16: twice the 3.3e-4 of
1,000 random vectors of 64 dimensions, whose cosines all have a common part; longer vectors vary less.
"""


def noise_of(arithmetic: str) -> float:
    """Return how far a cosine may vary with the batch, for a backend or protocol, whose name holds the arithmetic."""
    return max([TIE, *(noise for name, noise in NOISE.items() if name in arithmetic)])


def in_order(
    scores: Scores, rows: Indices, same: npt.NDArray[np.bool_] | None = None, noise: float = TIE
) -> npt.NDArray[np.intp]:
    """Return the indices of the scores, the best first.

    Among equal scores, texts that equal the query (``same``) come first, then lower rows. A same text also comes before
    all that are better by at most ``noise``. All arrays are ``(n,)``.
    """
    order = np.lexsort((rows, -scores))
    if len(order) < 2:
        return order
    # False sorts before True, and so puts the same texts first.
    first = ~same if same is not None else np.zeros(len(rows), dtype=bool)
    group = groups(scores[order])
    order = order[np.lexsort((rows[order], first[order], group))]
    if same is None or not same.any():
        return order
    return _move_same_up(order, scores, same, noise)


def groups(scores: Scores) -> Indices:
    """Return the group of each score ``(n,)``; scores descend, and those of a group are within TIE of its first."""
    if not len(scores):
        return np.zeros(0, dtype=np.int64)
    new = np.concatenate([[False], -np.diff(scores) > TIE])
    starts = np.concatenate([[0], np.flatnonzero(new), [len(scores)]])
    spans = scores[starts[:-1]] - scores[starts[1:] - 1]
    for chain in np.flatnonzero(spans > TIE).tolist():  # each score is close to the next, but the ends are not
        head = scores[starts[chain]]
        for index in range(starts[chain], starts[chain + 1]):
            if head - scores[index] > TIE:
                head = scores[index]
                new[index] = True
    return np.cumsum(new)


def _move_same_up(
    order: npt.NDArray[np.intp], scores: Scores, same: npt.NDArray[np.bool_], noise: float
) -> npt.NDArray[np.intp]:
    """Return the order with each same text before all that are better by at most ``noise``."""
    indices: list[int] = order.tolist()
    start = 0
    for index in [index for index in indices if same[index]]:
        target = indices.index(index)
        while target > start and scores[indices[target - 1]] <= scores[index] + noise:
            target -= 1
        indices.remove(index)
        indices.insert(target, index)
        # The next one stays behind a text that was moved up.
        start = target + 1
    return np.array(indices, dtype=np.intp)


def best(scores: Scores, rows: Indices) -> int:
    """Return the index of the best score, among equal scores that of the lowest row."""
    equal = np.flatnonzero(scores >= scores.max() - TIE)
    return int(equal[np.argmin(rows[equal])])


def same_as(text: str, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which of the texts equal ``text`` ``(texts,)``."""
    return np.array([candidate == text for candidate in texts], dtype=bool)
