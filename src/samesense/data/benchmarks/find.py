"""Find the known benchmarks in a folder, whatever its layout, or on the hub."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from samesense.data.benchmarks.argument import argument_part
from samesense.data.benchmarks.catalogue import BENCHMARKS, Benchmark, part_name
from samesense.data.benchmarks.chinese_sts import bojone_part
from samesense.data.benchmarks.layout import is_split, read_known, tsv_part
from samesense.data.benchmarks.original import Load, Loaded
from samesense.data.benchmarks.sentences import LabelledSentences, labelled_sentences
from samesense.data.benchmarks.senteval import senteval_part
from samesense.data.pairs.data import PairData, concat
from samesense.errors import DataError

INSIDE = ("", "en", "zh", "downstream", "data/downstream", "senteval_cn")
"""Folders looked into, inside the one that was named."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One split of a known benchmark, found but not yet read.

    Attributes:
        benchmark: its row of the catalogue.
        split: the split, as in the catalogue.
        where: the folder or hub name it was found under.
        load: reads it: ``PairData`` or ``LabelledSentences``, as the shape of the benchmark says.
    """

    benchmark: Benchmark
    split: str
    where: str
    load: Load

    @property
    def name(self) -> str:
        """Name of the split, such as ``"stsb.test"``."""
        return part_name(self.benchmark.name, self.split)


def find_parts(folder: str | Path) -> dict[str, Part]:
    """Find every split of every known benchmark in a folder.

    Three layouts are known and may stand side by side: TSV files named as the catalogue names its splits
    (``sts12.test.tsv``, ``mr.tsv.gz``), SentEval's (``STS/STS12-en-test``, ``MR/rt-polarity.pos``), and that of the
    Chinese sets (``ATEC/ATEC.test.data``); also the files ``ArgPairs_*.csv``. The folders in :data:`INSIDE` are looked
    into as well, and the first finding counts. ``stsb`` files are English or Chinese by their text.

    Args:
        folder: an existing folder.

    Returns:
        The splits by name, such as ``"stsb.test"``, in the order of the catalogue.

    Raises:
        DataError: if there is no such folder.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise DataError(f"{folder}: there is no such folder. Check the spelling and the working directory.")
    found: dict[str, Part] = {}
    for benchmark in BENCHMARKS.values():
        for split in benchmark.rows:
            load = next((load for place in INSIDE if (load := _reader(root / place, benchmark, split))), None)
            if load is not None:
                part = Part(benchmark=benchmark, split=split, where=str(folder), load=load)
                found[part.name] = part
    return found


def hub_parts(name: str) -> dict[str, Part]:
    """Return the splits of one benchmark that the hub has, by name; nothing is loaded yet.

    Args:
        name: a name of the catalogue.

    Raises:
        DataError: if the catalogue has no such name, or knows no copy on the hub.
    """
    if name not in BENCHMARKS:
        raise DataError(f"No benchmark is called {name!r}. Known: {', '.join(BENCHMARKS)}.")
    benchmark = BENCHMARKS[name]
    if not benchmark.hub:
        raise DataError(f"{name}: no usable copy on the hub is known. Name a folder that holds its files.")
    parts = [
        Part(benchmark=benchmark, split=split, where=", ".join(sources), load=partial(_joined, benchmark, sources))
        for split, sources in benchmark.hub.items()
    ]
    return {part.name: part for part in parts}


def file_part(path: str | Path) -> Part | None:
    """Return the split that a TSV file is by its name, or ``None`` if its name is none of the catalogue's."""
    file = Path(path).expanduser()
    for benchmark in BENCHMARKS.values():
        for split in benchmark.rows:
            if is_split(file, benchmark, split):
                load = partial(read_known, str(file), benchmark)
                return Part(benchmark=benchmark, split=split, where=str(path), load=load)
    return None


def _reader(folder: Path, benchmark: Benchmark, split: str) -> Load | None:
    if not folder.is_dir():
        return None
    layouts: tuple[Callable[[Path, Benchmark, str], Load | None], ...] = (
        tsv_part,
        senteval_part,
        bojone_part,
        argument_part,
    )
    return next((load for layout in layouts if (load := layout(folder, benchmark, split))), None)


def _joined(benchmark: Benchmark, sources: tuple[str, ...]) -> Loaded:
    read = [read_known(source, benchmark) for source in sources]
    if len(read) == 1:
        return read[0]
    pairs = [data for data in read if isinstance(data, PairData)]
    sentences = [data for data in read if isinstance(data, LabelledSentences)]
    if pairs:
        return concat(pairs)
    texts = [text for data in sentences for text in data.texts]
    return labelled_sentences(texts, [name for data in sentences for name in data.named()], " + ".join(sources))
