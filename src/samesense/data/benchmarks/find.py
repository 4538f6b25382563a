"""Find the known benchmarks in a folder, whatever its layout, or on the hub."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from samesense.data.benchmarks.catalogue import BENCHMARKS, Benchmark, part_name
from samesense.data.benchmarks.comparability import is_chinese
from samesense.data.benchmarks.published import argument_part, chinese_part, senteval_part
from samesense.data.benchmarks.sentences import LabelledSentences, Load, Loaded, labelled_sentences, read_sentences
from samesense.data.formats.files import read_rows
from samesense.data.pairs.data import PairData, concat
from samesense.data.pairs.read import read_pairs
from samesense.errors import DataError
from samesense.places import JOINT

INSIDE = ("", "en", "zh", "downstream", "data/downstream", "senteval_cn")
"""Folders looked into, inside the one that was named."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One split of a known benchmark, found but not yet read."""

    benchmark: Benchmark  # its row of the catalogue
    split: str  # the split, as in the catalogue
    where: str  # the folder or hub name it was found under
    load: Load  # reads it: PairData or LabelledSentences, as the shape of the benchmark says

    @property
    def name(self) -> str:
        """Name of the split, such as ``"stsb.test"``."""
        return part_name(self.benchmark.name, self.split)


def find_parts(folder: str | Path) -> dict[str, Part]:
    """Find every split of every known benchmark in a folder: by name, such as ``"stsb.test"``, as in the catalogue.

    Three layouts are known and may stand side by side: TSV files named as the catalogue names its splits
    (``sts12.test.tsv``, ``mr.tsv.gz``), SentEval's (``STS/STS12-en-test``, ``MR/rt-polarity.pos``), and that of the
    Chinese sets (``ATEC/ATEC.test.data``); also the files ``ArgPairs_*.csv``. The folders in :data:`INSIDE` are looked
    into as well, and the first finding counts. ``stsb`` files are English or Chinese by their text. DataError if there
    is no such folder.
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
    """Return the splits of one benchmark that the hub has, by name, not yet loaded; DataError if it has none."""
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


def known_split(source: str) -> tuple[Benchmark, str] | None:
    """Return which split of which benchmark a source is by its name, on disk or on the hub."""
    for benchmark in BENCHMARKS.values():
        for split, sources in benchmark.hub.items():
            if sources == (source,):
                return benchmark, split
    part = file_part(source)
    return None if part is None else (part.benchmark, part.split)


def _reader(folder: Path, benchmark: Benchmark, split: str) -> Load | None:
    if not folder.is_dir():
        return None
    layouts = (tsv_part, senteval_part, chinese_part, argument_part)
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
    return labelled_sentences(texts, [label for data in sentences for label in data.labels], JOINT.join(sources))


_ROWS_LOOKED_AT = 40


def tsv_part(folder: Path, benchmark: Benchmark, split: str) -> Load | None:
    """Return a reader of one split of a set in this layout, or ``None`` if it is not there.

    The file is ``NAME.SPLIT.tsv``, or ``NAME.tsv`` where there are no splits; ``.gz`` may follow. Pairs have the
    columns ``score``, ``sentence1``, ``sentence2`` and perhaps ``subset``, sentences ``label`` and ``sentence``.
    """
    file = next((folder / name for name in _names(benchmark, split) if is_split(folder / name, benchmark, split)), None)
    return None if file is None else partial(read_known, str(file), benchmark)


def is_split(file: Path, benchmark: Benchmark, split: str) -> bool:
    """Tell whether a file exists and is this split, by its name and, where two sets share a name, its language."""
    if file.name not in _names(benchmark, split) or not file.is_file():
        return False
    if f"{benchmark.name.removesuffix('-zh')}-zh" not in BENCHMARKS:
        return True
    longest = [max(map(str, cells.values()), key=len) for _, cells in islice(read_rows(file), _ROWS_LOOKED_AT)]
    return is_chinese(longest) == (benchmark.language == "zh")


def read_known(source: str, benchmark: Benchmark) -> Loaded:
    """Read a file or hub name as the catalogue says: pairs on the known scale, or sentences, empty ones kept."""
    if benchmark.shape == "sentences":
        return read_sentences(source, keep_empty=True)
    return read_pairs(source, label_range=benchmark.scale)


def _names(benchmark: Benchmark, split: str) -> list[str]:
    stems = dict.fromkeys([benchmark.name, benchmark.name.removesuffix("-zh")])
    return [part_name(stem, split) + ending for stem in stems for ending in (".tsv", ".tsv.gz")]
