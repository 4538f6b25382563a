"""The data of a sweep's cells: read, held out and cut to the rows asked for, always the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from samesense.data import PairData, read_pairs
from samesense.errors import DataError
from samesense.recipes.sweep.file import DataEntry


@dataclass(frozen=True)
class Parts:
    """The data of one entry, as they are used: parts of the sources where the file asks for that."""

    train: PairData
    dev: PairData | None
    tests: dict[str, PairData]

    def identity(self) -> dict[str, Any]:
        """Return the fingerprints."""
        return {
            "train": self.train.sha256,
            "dev": None if self.dev is None else self.dev.sha256,
            "tests": {name: data.sha256 for name, data in self.tests.items()},
        }


def read_parts(entry: DataEntry, seed: int) -> Parts:
    """Read the data of an entry, hold out what selects, and take the rows asked for.

    Raises:
        DataError: if a source cannot be used, or a part of it has one label only.
    """
    train = _read(entry, entry.train)
    share = entry.held_out()
    dev: PairData | None = None
    if share is not None:
        train, dev = train.split(share, seed)
    elif entry.dev != "none":
        dev = _read(entry, entry.dev)
    tests = {name: _read(entry, source) for name, source in entry.tests().items()}
    return Parts(
        sample_rows(train, entry.train_rows, seed),
        None if dev is None else sample_rows(dev, entry.dev_rows, seed),
        {name: sample_rows(data, entry.test_rows, seed) for name, data in tests.items()},
    )


def sample_rows(data: PairData, rows: int | None, seed: int) -> PairData:
    """Return a random part of so many rows, in the order of the source; all of them if there are no more.

    Raises:
        DataError: if all labels of the part are the same.
    """
    part = data
    if rows is not None and rows < len(data):
        part = data.take(np.sort(np.random.default_rng(seed).choice(len(data), rows, replace=False)))
    if len(set(part.labels)) < 2:
        raise DataError(
            f"{data.source}: all {len(part)} labels that are used are {part.labels[0]:g}: nothing to rank. Take more "
            "rows."
        )
    return part


def _read(entry: DataEntry, source: str) -> PairData:
    return read_pairs(
        source,
        columns=entry.columns,
        label_order=entry.label_order,
        label_range=entry.label_range,
        drop_bad_rows=entry.drop_bad_rows,
    )
