"""Which of equal scores comes first: the same text, then the lower row. One rule for every search.

Equal is what cannot be told from equal: the same tokens among other texts of a batch give a vector that differs in its
last bits. The score of the same text may differ by the noise of its arithmetic, and it still comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from samesense.types import Indices, Scores

TIE = 4e-7
"""Scores that are closer are equal: twice by how much cosines of the same texts in other batches differed in float32.

That was 2.0e-7 over 50 queries and 400 texts in batches of 1 to 200 (all-MiniLM-L6-v2, multilingual-e5-small).
"""

NOISE = {"bfloat16": 4e-3, "onnx-int8": 2e-2, "float16": 1e-4}
"""How far arithmetic moves a cosine with the texts beside it; float32 stays below TIE.

bfloat16: four times what was measured, 1.1e-3 (all-MiniLM-L6-v2). int8, which takes its scale from all texts of a
batch, and vectors kept in float16 were not measured: these are upper estimates.
"""


def noise_of(arithmetic: str) -> float:
    """Return how far a cosine may move with the texts beside it, of a backend or a protocol that names it."""
    return max([TIE, *(noise for name, noise in NOISE.items() if name in arithmetic)])


def in_order(
    scores: Scores, rows: Indices, same: npt.NDArray[np.bool_] | None = None, noise: float = TIE
) -> npt.NDArray[np.intp]:
    """Return the places of the scores, the best first.

    Of equal ones those come first that are ``same``, the text that is looked for, and then the lower row. What is the
    same stands before all that are better by ``noise`` at most. All arrays are ``(n,)``.
    """
    order = np.lexsort((rows, -scores))
    if len(order) < 2:
        return order
    first = ~same if same is not None else np.zeros(len(rows), dtype=bool)
    group = groups(scores[order])
    order = order[np.lexsort((rows[order], first[order], group))]
    return order if same is None or not same.any() else _moved(order, scores, same, noise)


def groups(scores: Scores) -> Indices:
    """Return the numbers of groups of equal scores ``(n,)``, which fall; all of one are TIE from its first at most."""
    if not len(scores):
        return np.zeros(0, dtype=np.int64)
    new = np.concatenate([[False], -np.diff(scores) > TIE])
    starts = np.concatenate([[0], np.flatnonzero(new), [len(scores)]])
    spans = scores[starts[:-1]] - scores[starts[1:] - 1]
    for chain in np.flatnonzero(spans > TIE).tolist():  # each close to the next, and the ends are not
        head = scores[starts[chain]]
        for index in range(starts[chain], starts[chain + 1]):
            if head - scores[index] > TIE:
                head, new[index] = scores[index], True
    return np.cumsum(new)


def _moved(
    order: npt.NDArray[np.intp], scores: Scores, same: npt.NDArray[np.bool_], noise: float
) -> npt.NDArray[np.intp]:
    """Return the order with what is the same before all that are better by no more than noise."""
    indices: list[int] = order.tolist()
    start = 0
    for index in [index for index in indices if same[index]]:
        target = indices.index(index)
        while target > start and scores[indices[target - 1]] <= scores[index] + noise:
            target -= 1
        indices.remove(index)
        indices.insert(target, index)
        start = target + 1
    return np.array(indices, dtype=np.intp)


def best(scores: Scores, rows: Indices) -> int:
    """Return the place of the best score, of equal ones that of the lowest row."""
    equal = np.flatnonzero(scores >= scores.max() - TIE)
    return int(equal[np.argmin(rows[equal])])


def same_as(text: str, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Return which of the texts are the same as one ``(texts,)``."""
    return np.array([candidate == text for candidate in texts], dtype=bool)
