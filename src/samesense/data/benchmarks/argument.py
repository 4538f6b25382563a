"""Argument facet similarity: pairs of arguments on three topics, scored 0 to 5."""

from __future__ import annotations

import csv
import io
from functools import partial
from pathlib import Path

from samesense.data.benchmarks.catalogue import WHOLE, Benchmark
from samesense.data.benchmarks.original import LabelledPair, Load, both_texts, label_number, pair_data
from samesense.data.pairs.data import PairData
from samesense.errors import DataError

TOPICS = {"DP": "death penalty", "GC": "gun control", "GM": "gay marriage"}
"""Topics by the letters that stand in the file names."""

FIELDS = 11
"""Columns of a row: the score first, the two sentences last."""


def argument_part(folder: Path, benchmark: Benchmark, split: str) -> Load | None:
    """Return a reader of the files ``ArgPairs_{DP,GC,GM}.csv``, or ``None`` if none is there.

    Args:
        folder: where the files lie, or where a folder ``AFS`` with them lies.
        benchmark: the set.
        split: the split, as in the catalogue.
    """
    if benchmark.name != "afs" or split != WHOLE:
        return None
    for place in (folder, folder / "AFS"):
        if any(_file(place, topic).is_file() for topic in TOPICS):
            return partial(read_argument_pairs, place)
    return None


def holds_arguments(source: str | Path) -> bool:
    """Return whether a source is a folder with a topic file."""
    return any(_file(Path(source).expanduser(), topic).is_file() for topic in TOPICS)


def read_argument_pairs(folder: Path) -> PairData:
    """Read every topic file of a folder, in the order of :data:`TOPICS`.

    Source: Misra, Ecker and Walker (2016), in the layout published with Reimers et al. (2019).
    Differs: a pair that stands twice is kept twice, where the latter's code keeps its last score.

    Args:
        folder: holds ``ArgPairs_DP.csv`` and so on, Latin-1, comma-separated, with a header line.

    Returns:
        The pairs with the topic (``"DP"``, ``"GC"``, ``"GM"``) as subset; a topic whose file is absent has none.

    Raises:
        DataError: if there is no such file, or a row breaks the layout.
    """
    rows: list[LabelledPair] = []
    for topic in TOPICS:
        if _file(folder, topic).is_file():
            rows += _topic_rows(_file(folder, topic), topic)
    return pair_data(rows, str(folder), (0, 5))


def _file(folder: Path, topic: str) -> Path:
    return folder / f"ArgPairs_{topic}.csv"


def _topic_rows(path: Path, topic: str) -> list[LabelledPair]:
    reader = csv.reader(io.StringIO(path.read_bytes().decode("latin-1"), newline=""))
    rows: list[LabelledPair] = []
    start = 1
    for cells in reader:
        if start > 1 and cells:
            if len(cells) != FIELDS:
                raise DataError(
                    f"{path}, row {start}: there must be {FIELDS} fields, the score first and the two sentences last; "
                    f"this row has {len(cells)}. A sentence with a comma in it must stand in double quotes."
                )
            label = label_number(cells[0], path, start, (0, 5))
            rows.append((*both_texts(path, start, cells[-2], cells[-1]), label, topic))
        start = reader.line_num + 1
    return rows
