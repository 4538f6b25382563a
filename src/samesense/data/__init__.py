"""Labelled pairs and sentences from files, folders and the hub, checked before anything is trained on them."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from samesense.data.benchmarks.catalogue import BENCHMARKS
from samesense.data.benchmarks.find import find_splits, hub_splits
from samesense.data.benchmarks.sentences import LabelledSentences, read_sentences
from samesense.data.pairs.data import PairData, concat
from samesense.data.pairs.doctor import examine
from samesense.data.pairs.read import read_pairs
from samesense.data.pairs.report import DataReport
from samesense.data.rows.load import load_rows
from samesense.errors import DataError

__all__ = [
    "BENCHMARKS",
    "DataReport",
    "LabelledSentences",
    "PairData",
    "concat",
    "examine",
    "find_splits",
    "hub_splits",
    "load_rows",
    "read_pairs",
    "read_sentences",
    "sample_path",
]

SAMPLES = ("train", "dev", "test")


def sample_path(name: str) -> Path:
    """Return the path of a part of the small sample that comes with the library.

    Args:
        name: ``"train"``, ``"dev"`` or ``"test"``.

    Raises:
        DataError: if there is no such part.
    """
    if name not in SAMPLES:
        raise DataError(f"The sample has the parts {', '.join(SAMPLES)}; received {name!r}. Name one of these.")
    return Path(str(resources.files("samesense.data"))) / "sample" / f"{name}.tsv"
