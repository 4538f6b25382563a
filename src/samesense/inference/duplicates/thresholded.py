"""What the results of dedup and match share: a threshold, which can be changed, and what the search missed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from samesense.errors import ConfigError
from samesense.inference.search.mining import check_threshold
from samesense.results.shown import ShownRows
from samesense.types import Indices


def refuse_threshold(threshold: float) -> NoReturn:
    """Raise ConfigError: stands in a pickled result for the function that needs the vectors and links."""
    raise ConfigError(
        f"A result that was pickled has one threshold; received {threshold:.4g}. Search again; `work` keeps "
        "what was encoded."
    )


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Thresholded(ShownRows):
    """A result at a threshold.

    Attributes:
        threshold: lowest cosine of two texts that count as the same.
        recall: share of the pairs above the threshold that the search found, measured on a sample; ``None`` if the
            search was exact, NaN if the sample has no such pair.
        sampled: number of pairs in the sample.
        unmerged: rows that are close to another row and not merged with it, because the two differ in what the model
            did not read.
        recompute: the function behind :meth:`with_threshold`.
    """

    threshold: float
    recall: float | None
    sampled: int
    unmerged: Indices
    recompute: Callable[[float], Any]

    def with_threshold(self, threshold: float) -> Self:
        """Return the result at another threshold; nothing is encoded again, and links are searched only once."""
        check_threshold(threshold)
        result: Self = self.recompute(threshold)
        return result

    def __getstate__(self) -> dict[str, Any]:
        """Return what a pickle holds: the result, without the search behind :meth:`with_threshold`."""
        return {**vars(self), "recompute": refuse_threshold}

    def search_to_dict(self) -> dict[str, Any]:
        """Return the threshold, and what the search missed, as plain JSON types."""
        measured = self.recall is not None and self.sampled > 0
        return {
            "unmerged": len(self.unmerged),
            "threshold": self.threshold,
            "recall": self.recall if measured else None,
            "sampled": self.sampled,
        }
