"""A harvest as training data: the training set, the dev pairs that select, and the test pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from samesense.data.conventions.numbers import number_text
from samesense.data.pairs.data import PairData
from samesense.errors import DataError
from samesense.hashes import rows_hash

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, eq=False, kw_only=True)
class Harvested:
    """Pairs scored by an Origin. The training set stays in Arrow, since it may have a hundred million pairs."""

    table: pa.Table  # training set: sentence1, sentence2 and label, Origin's score; or text and embedding
    dev: PairData  # selects the checkpoint
    held: PairData  # tests at the end
    kinds: dict[str, int]  # number of pairs by kind, in all splits together
    source: str  # the folders as the user gave them
    name: str  # short name for messages
    sha256: str  # fingerprint of the training set, in order

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def take(self, indices: Iterable[int]) -> Harvested:
        """Return the harvest with only these rows of the training set, in this order."""
        table = self.table.take([int(index) for index in indices])
        return replace(self, table=table, sha256=digest_of(table))

    @property
    def by_sentences(self) -> bool:
        """Whether the training set is sentences with vectors rather than pairs with scores."""
        return "embedding" in self.table.column_names

    def labels(self) -> npt.NDArray[np.float64]:
        """Return Origin's scores of the training pairs, ``(rows,)``."""
        return np.asarray(self.table["label"].to_numpy(), dtype=np.float64)

    @property
    def summary(self) -> str:
        """Description of the splits in one line."""
        if self.by_sentences:
            training = f"{len(self):,} sentences of {self.name} with their vectors"
            return f"{training}; of pairs of others {len(self.dev):,} select, {len(self.held):,} test"
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.kinds.items()))
        low, *_, high = np.percentile(self.labels(), [0, 25, 50, 75, 100])
        return (
            f"{len(self):,} pairs of {self.name} ({kinds}), {len(self.dev):,} select, {len(self.held):,} test; scores "
            # The z turns a rounded -0.000 into 0.000.
            f"{low:z.3f} to {high:z.3f}, deviation {self.labels().std():.3f}"
        )


def iterate_rows(table: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield the rows, converted to Python in batches to save memory."""
    for batch in table.to_batches(max_chunksize=10_000):
        yield from zip(*batch.to_pydict().values(), strict=True)


def digest_of(table: pa.Table) -> str:
    """Return a fingerprint of rows in order."""
    return rows_hash(iterate_rows(table))


def targets_of(scores: Any, low: float, high: float) -> npt.NDArray[np.float64]:
    """Return scores mapped linearly from ``low`` to ``high`` onto 0 to 1."""
    if not high > low:
        raise DataError(f"Scores are spread from the lowest to the highest, and all are {number_text(low)}.")
    return (np.asarray(scores, dtype=np.float64) - low) / (high - low)
