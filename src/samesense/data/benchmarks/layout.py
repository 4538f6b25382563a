"""The library's own layout of a benchmark folder: one TSV file a split, named as the catalogue names it."""

from __future__ import annotations

from functools import partial
from itertools import islice
from pathlib import Path

from samesense.data.benchmarks.catalogue import BENCHMARKS, Benchmark, part_name
from samesense.data.benchmarks.original import Load, Loaded
from samesense.data.benchmarks.sentences import read_sentences
from samesense.data.benchmarks.text_variant import is_chinese
from samesense.data.formats.files import read_rows
from samesense.data.pairs.read import read_pairs

_ROWS_LOOKED_AT = 40


def tsv_part(folder: Path, benchmark: Benchmark, split: str) -> Load | None:
    """Return a reader of one split of a set in this layout, or ``None`` if it is not there.

    The file is ``NAME.SPLIT.tsv``, or ``NAME.tsv`` where there are no splits; ``.gz`` may follow. Pairs have the
    columns ``score``, ``sentence1``, ``sentence2`` and perhaps ``subset``, sentences ``label`` and ``sentence``.

    Args:
        folder: where to look.
        benchmark: the set.
        split: the split, as in the catalogue.
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
