"""The Chinese similarity sets as they are usually shared: ``ATEC/ATEC.test.data`` and so on, without a header."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from samesense.data.benchmarks.catalogue import Benchmark
from samesense.data.benchmarks.original import LabelledPair, Load, both_texts, label_number, lines_of, pair_data
from samesense.data.formats.scale import Scale
from samesense.data.pairs.data import PairData

FIELDS = 3
"""Text, text, label."""

_FOLDERS = {"atec": "ATEC", "bq": "BQ", "lcqmc": "LCQMC", "pawsx": "PAWSX", "stsb-zh": "STS-B"}
_SPLITS = {"train": "train", "dev": "valid", "test": "test"}


def bojone_part(folder: Path, benchmark: Benchmark, split: str) -> Load | None:
    """Return a reader of one split of a Chinese set, or ``None`` if it is not there.

    A line that has not three fields is left out and counted, as in every published use of these files.

    Args:
        folder: the one that holds ``ATEC``, ``BQ`` and so on.
        benchmark: the set.
        split: the split, as in the catalogue.
    """
    name = _FOLDERS.get(benchmark.name)
    path = folder / f"{name}" / f"{name}.{_SPLITS.get(split, split)}.data"
    if name is None or benchmark.scale is None or not path.is_file():
        return None
    return partial(_read, path, benchmark.scale)


def _read(path: Path, scale: Scale) -> PairData:
    rows: list[LabelledPair] = []
    dropped = 0
    for number, line in lines_of(path):
        cells = line.strip("\r\n").split("\t")
        if len(cells) != FIELDS:
            dropped += 1
            continue
        rows.append((*both_texts(path, number, *cells[:2]), label_number(cells[2], path, number, scale), ""))
    return pair_data(rows, str(path), scale, dropped=dropped)
