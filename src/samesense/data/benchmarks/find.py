"""Finds the known benchmarks in a folder, in any of several layouts, or on the hub."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import islice, product
from pathlib import Path

from samesense.data.benchmarks.catalogue import BENCHMARKS, Benchmark, split_name
from samesense.data.benchmarks.comparability import is_chinese
from samesense.data.benchmarks.published import argument_split, chinese_split, senteval_split
from samesense.data.benchmarks.sentences import LabelledSentences, Load, Loaded, labelled_sentences, read_sentences
from samesense.data.pairs.data import PairData, concat
from samesense.data.pairs.read import read_pairs
from samesense.data.rows.load import read_rows
from samesense.errors import DataError
from samesense.places import JOINT

INSIDE = ("", "en", "zh", "downstream", "data/downstream", "senteval_cn")
"""Subfolders of the given folder that are searched."""

_SNIFFED_ROWS = 40
"""Rows whose texts decide the language of a file."""


@dataclass(frozen=True, kw_only=True)
class BenchmarkSplit:
    """One split of a known benchmark, found but not yet read."""

    benchmark: Benchmark  # its row of the catalogue
    split: str  # the split, as in the catalogue
    load: Load  # reads it as PairData or LabelledSentences, as the shape of the benchmark says

    @property
    def name(self) -> str:
        """Name of the split, such as ``"stsb.test"``."""
        return split_name(self.benchmark.name, self.split)


def find_splits(folder: str | Path) -> dict[str, BenchmarkSplit]:
    """Return every split of every known benchmark in a folder, by name, such as ``"stsb.test"``.

    A folder may mix these layouts: TSV files with the names of the catalogue (``sts12.test.tsv``, ``mr.tsv.gz``), those
    of SentEval (``STS/STS12-en-test``, ``MR/rt-polarity.pos``) and of the Chinese sets (``ATEC/ATEC.test.data``), and
    files ``ArgPairs_*.csv``. The subfolders in :data:`INSIDE` are searched too, and the first match counts. Whether
    ``stsb`` files are English or Chinese is detected from their text. DataError if there is no such folder.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise DataError(f"{folder}: there is no such folder. Check the spelling and the working directory.")
    splits: dict[str, BenchmarkSplit] = {}
    for benchmark in BENCHMARKS.values():
        for split in benchmark.rows:
            load = _find_reader(root, benchmark, split)
            if load is not None:
                benchmark_split = BenchmarkSplit(benchmark=benchmark, split=split, load=load)
                splits[benchmark_split.name] = benchmark_split
    return splits


def hub_splits(name: str) -> dict[str, BenchmarkSplit]:
    """Return the splits of one benchmark that the hub has, by name, not yet loaded; DataError if it has none."""
    if name not in BENCHMARKS:
        raise DataError(f"No benchmark is called {name!r}. Known: {', '.join(BENCHMARKS)}.")
    benchmark = BENCHMARKS[name]
    if not benchmark.hub:
        raise DataError(f"{name}: no usable copy on the hub is known. Name a folder that holds its files.")
    splits = [
        BenchmarkSplit(benchmark=benchmark, split=split, load=partial(_read_and_join, benchmark, sources))
        for split, sources in benchmark.hub.items()
    ]
    return {benchmark_split.name: benchmark_split for benchmark_split in splits}


def split_of_file(path: str | Path) -> BenchmarkSplit | None:
    """Return the split that a TSV file holds, judged by its name; ``None`` if the name is not in the catalogue."""
    file = Path(path).expanduser()
    for benchmark in BENCHMARKS.values():
        for split in benchmark.rows:
            if is_split(file, benchmark, split):
                load = partial(read_known, str(file), benchmark)
                return BenchmarkSplit(benchmark=benchmark, split=split, load=load)
    return None


def known_split(source: str) -> tuple[Benchmark, str] | None:
    """Return the benchmark and split of a source, judged by its name on disk or on the hub; ``None`` if unknown."""
    for benchmark in BENCHMARKS.values():
        for split, sources in benchmark.hub.items():
            if sources == (source,):
                return benchmark, split
    benchmark_split = split_of_file(source)
    if benchmark_split is None:
        return None
    return benchmark_split.benchmark, benchmark_split.split


def _find_reader(root: Path, benchmark: Benchmark, split: str) -> Load | None:
    """Return the reader of a split in the first subfolder and layout that has it; ``None`` if none has."""
    folders = [root / subfolder for subfolder in INSIDE if (root / subfolder).is_dir()]
    for folder, layout in product(folders, (tsv_split, senteval_split, chinese_split, argument_split)):
        load = layout(folder, benchmark, split)
        if load is not None:
            return load
    return None


def _read_and_join(benchmark: Benchmark, sources: tuple[str, ...]) -> Loaded:
    loaded = [read_known(source, benchmark) for source in sources]
    if len(loaded) == 1:
        return loaded[0]
    pairs = [data for data in loaded if isinstance(data, PairData)]
    sentences = [data for data in loaded if isinstance(data, LabelledSentences)]
    if pairs:
        return concat(pairs)
    texts = [text for data in sentences for text in data.texts]
    return labelled_sentences(texts, [label for data in sentences for label in data.labels], JOINT.join(sources))


def tsv_split(folder: Path, benchmark: Benchmark, split: str) -> Load | None:
    """Return a reader of one split in the layout of this library, or ``None`` if the file is missing.

    The file is ``NAME.SPLIT.tsv``, or ``NAME.tsv`` if there are no splits; ``.gz`` may follow. Pairs have the columns
    ``score``, ``sentence1``, ``sentence2`` and perhaps ``subset``; sentences have ``label`` and ``sentence``.
    """
    for name in _file_names(benchmark, split):
        if is_split(folder / name, benchmark, split):
            return partial(read_known, str(folder / name), benchmark)
    return None


def is_split(file: Path, benchmark: Benchmark, split: str) -> bool:
    """Return whether a file exists and is this split, by its name and, if two sets share the name, its language."""
    if file.name not in _file_names(benchmark, split) or not file.is_file():
        return False
    if f"{benchmark.name.removesuffix('-zh')}-zh" not in BENCHMARKS:
        return True
    # Only the longest cell of a row, because labels and short cells have no language.
    longest = [max(map(str, cells.values()), key=len) for _, cells in islice(read_rows(file), _SNIFFED_ROWS)]
    return is_chinese(longest) == (benchmark.language == "zh")


def read_known(source: str, benchmark: Benchmark) -> Loaded:
    """Read a file or hub name by the catalogue: pairs on the known scale, or sentences including empty ones."""
    if benchmark.shape == "sentences":
        return read_sentences(source, keep_empty=True)
    return read_pairs(source, label_range=benchmark.scale)


def _file_names(benchmark: Benchmark, split: str) -> list[str]:
    stems = dict.fromkeys([benchmark.name, benchmark.name.removesuffix("-zh")])
    return [split_name(stem, split) + ending for stem in stems for ending in (".tsv", ".tsv.gz")]
