"""Reads benchmarks in their published layouts: SentEval's folders, the Chinese sets, and the argument pairs."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from samesense.data.benchmarks.catalogue import WHOLE, Benchmark
from samesense.data.benchmarks.sentences import LabelledSentences, Load, Loaded, labelled_sentences
from samesense.data.conventions.numbers import to_number
from samesense.data.conventions.scales import Scale
from samesense.data.pairs.data import PairData
from samesense.data.rows.table_options import table_options
from samesense.data.rows.text import read_lines
from samesense.errors import DataError

TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
"""Coarse classes of TREC questions."""

_TWO_FILES = {
    "mr": ("MR/rt-polarity.neg", "MR/rt-polarity.pos"),
    "cr": ("CR/custrev.neg", "CR/custrev.pos"),
    "subj": ("SUBJ/subj.subjective", "SUBJ/subj.objective"),
    "mpqa": ("MPQA/mpqa.neg", "MPQA/mpqa.pos"),
}
"""The files of class 0 and class 1."""

_SICK = {"dev": "trial", "test": "test_annotated"}
_TREC = {"train": "train_5500", "test": "TREC_10"}

CHINESE_FIELDS = 3
"""Fields of a row: text, text, label."""

_CHINESE_FOLDERS = {"atec": "ATEC", "bq": "BQ", "lcqmc": "LCQMC", "pawsx": "PAWSX", "stsb-zh": "STS-B"}
_CHINESE_SPLITS = {"dev": "valid"}

TOPICS = {"DP": "death penalty", "GC": "gun control", "GM": "gay marriage"}
"""Topics by their abbreviations in the file names."""

ARGUMENT_FIELDS = 11
"""Fields of a row: the score first, the two sentences last."""


class _LabelledPair(NamedTuple):
    """Two sentences of a row.

    Attributes:
        first: the first sentence.
        second: the second sentence.
        label: their label; ``None`` if the source has none.
        subset: their subset; empty if the source has none.
    """

    first: str
    second: str
    label: float | None
    subset: str


def senteval_split(folder: Path, benchmark: Benchmark, split: str) -> Load | None:
    """Return a reader of one split in a SentEval folder, or ``None`` if it is missing.

    ``folder`` is the one with ``STS``, ``SICK``, ``MR`` and so on. Runs of whitespace become one space, because
    SentEval splits texts at whitespace.
    """
    name = benchmark.name
    if name.startswith("sts") and name[3:].isdigit() and split == "test":
        return _reader_if_present(
            folder / "STS" / f"STS{name[3:]}-en-test", partial(_read_semeval, benchmark=benchmark)
        )
    if name in _TWO_FILES and split == WHOLE:
        negative, positive = (folder / file for file in _TWO_FILES[name])
        return _reader_if_present(negative, partial(_read_two_files, positive=positive))
    # In STS-B, the first three columns are genre, file and year.
    readers: dict[str, tuple[str, Callable[[Path], Loaded]]] = {
        "stsb": (
            f"STS/STSBenchmark/sts-{split}.csv",
            partial(_read_pairs, texts=(5, 6), label=4, scale=(0, 5), subset=slice(3)),
        ),
        "sickr": (
            f"SICK/SICK_{_SICK.get(split, split)}.txt",
            partial(_read_pairs, texts=(1, 2), label=3, scale=(0, 5), header=True),
        ),
        "mrpc": (
            f"MRPC/msr_paraphrase_{split}.txt",
            partial(_read_pairs, texts=(3, 4), label=0, scale=(0, 1), header=True),
        ),
        "sst2": (f"SST/binary/sentiment-{split}", _read_sst),
        "trec": (f"TREC/{_TREC.get(split, split)}.label", _read_trec),
    }
    if name not in readers:
        return None
    file, read = readers[name]
    return _reader_if_present(folder / file, read)


def _reader_if_present(path: Path, read: Callable[[Path], Loaded]) -> Load | None:
    if not path.exists():
        return None
    return partial(read, path)


def _read_semeval(folder: Path, *, benchmark: Benchmark) -> PairData:
    """Read the published subsets of one year; a subset without its two files is left out."""
    scale = benchmark.scale or (0, 5)
    rows: list[_LabelledPair] = []
    for subset in benchmark.subsets:
        texts = folder / f"STS.input.{subset}.txt"
        gold = folder / f"STS.gs.{subset}.txt"
        if not texts.exists() and not gold.exists():
            continue
        pairs = list(_read_cells(texts, 2))
        cells = [line.strip() for _, line in _read_lines(gold)]
        if len(pairs) != len(cells):
            raise DataError(
                f"{gold}: there must be one line for each pair, empty where it has no score; got {len(cells)} lines "
                f"for the {len(pairs)} pairs of {texts.name}. Download the set again."
            )
        for (number, (first, second, *_)), cell in zip(pairs, cells, strict=True):
            rows.append(_parse_pair(texts, number, first, second, cell, scale, subset, gold))
    return _collect_pairs(rows, str(folder), scale)


def _read_pairs(
    path: Path, *, texts: tuple[int, int], label: int, scale: Scale, subset: slice = slice(0), header: bool = False
) -> PairData:
    """Read a table of pairs; ``texts``, ``label`` and ``subset`` are positions of columns."""
    rows = [
        _parse_pair(path, number, cells[texts[0]], cells[texts[1]], cells[label], scale, "/".join(cells[subset]))
        for number, cells in _read_cells(path, max(*texts, label) + 1, header=header)
    ]
    return _collect_pairs(rows, str(path), scale)


def _read_two_files(negative: Path, *, positive: Path) -> LabelledSentences:
    """Read two files of one class each, class 1 first as in SentEval; an empty line is an empty sentence."""
    texts = []
    classes = []
    # The order decides which sentences are in which fold.
    for path, label in ((positive, "1"), (negative, "0")):
        lines = _read_latin1_lines(path)
        texts += [_normalize_spaces(line) for line in lines]
        classes += [label] * len(lines)
    return labelled_sentences(texts, classes, str(negative.parent))


def _read_sst(path: Path) -> LabelledSentences:
    rows = [(_normalize_spaces(cells[0]), cells[1].strip()) for _, cells in _read_cells(path, 2)]
    return labelled_sentences([text for text, _ in rows], [label for _, label in rows], str(path))


def _read_trec(path: Path) -> LabelledSentences:
    texts = []
    classes = []
    for number, line in enumerate(_read_latin1_lines(path), 1):
        label, _, question = line.partition(" ")
        # Published figures are of the six coarse classes.
        coarse = label.partition(":")[0]
        if coarse not in TREC_CLASSES or not question.strip():
            raise DataError(
                f"{path}, row {number}: a line must be COARSE:fine and a question, the coarse class one of "
                f"{', '.join(TREC_CLASSES)}; received {line[:60]!r}. Compare the file with its source."
            )
        texts.append(_normalize_spaces(question))
        classes.append(coarse)
    return labelled_sentences(texts, classes, str(path))


def chinese_split(folder: Path, benchmark: Benchmark, split: str) -> Load | None:
    """Return a reader of one split of a Chinese set, or ``None`` if it is missing.

    A line without exactly three fields is left out and counted, as in every published use of these files.
    """
    name = _CHINESE_FOLDERS.get(benchmark.name)
    path = folder / f"{name}" / f"{name}.{_CHINESE_SPLITS.get(split, split)}.data"
    if name is None or benchmark.scale is None or not path.is_file():
        return None
    return partial(_read_chinese_pairs, path, benchmark.scale)


def _read_chinese_pairs(path: Path, scale: Scale) -> PairData:
    rows: list[_LabelledPair] = []
    dropped = 0
    for number, line in _read_lines(path):
        cells = line.strip("\r\n").split("\t")
        if len(cells) != CHINESE_FIELDS:
            dropped += 1
            continue
        rows.append(_parse_pair(path, number, cells[0], cells[1], cells[2], scale))
    return _collect_pairs(rows, str(path), scale, dropped=dropped)


def argument_split(folder: Path, benchmark: Benchmark, split: str) -> Load | None:
    """Return a reader of the files ``ArgPairs_{DP,GC,GM}.csv``, or ``None`` if there are none."""
    if benchmark.name != "afs" or split != WHOLE:
        return None
    for candidate in (folder, folder / "AFS"):
        if holds_arguments(candidate):
            return partial(read_argument_pairs, candidate)
    return None


def holds_arguments(source: str | Path) -> bool:
    """Return whether a source is a folder with a topic file."""
    return any(_topic_file(Path(source).expanduser(), topic).is_file() for topic in TOPICS)


def read_argument_pairs(folder: Path) -> PairData:
    """Read every topic file of a folder, ``ArgPairs_DP.csv`` and so on, in the order of :data:`TOPICS`.

    The files are Latin-1, comma-separated, with a header line. Topics (``"DP"``, ``"GC"``, ``"GM"``) are the subsets.
    DataError if there is no such file, or a row breaks the layout.

    Source: Misra, Ecker and Walker (2016), in the layout published with Reimers et al. (2019).
    Differs: a repeated pair is kept, whereas the code of Reimers et al. keeps only its last score.
    """
    rows: list[_LabelledPair] = []
    for topic in TOPICS:
        if _topic_file(folder, topic).is_file():
            rows += _read_topic(_topic_file(folder, topic), topic)
    return _collect_pairs(rows, str(folder), (0, 5))


def _topic_file(folder: Path, topic: str) -> Path:
    return folder / f"ArgPairs_{topic}.csv"


def _read_topic(path: Path, topic: str) -> list[_LabelledPair]:
    # Sentences hold line breaks, so that the file is not read line by line.
    reader = csv.reader(io.StringIO(path.read_bytes().decode("latin-1"), newline=""))
    rows: list[_LabelledPair] = []
    start = 1
    for cells in reader:
        # The first row is the header.
        if start > 1 and cells:
            if len(cells) != ARGUMENT_FIELDS:
                raise DataError(
                    f"{path}, row {start}: there must be {ARGUMENT_FIELDS} fields, the score first, the sentences "
                    f"last; this row has {len(cells)}. A sentence with a comma in it must stand in double quotes."
                )
            rows.append(_parse_pair(path, start, cells[-2], cells[-1], cells[0], (0, 5), topic))
        start = reader.line_num + 1
    return rows


def _collect_pairs(rows: Sequence[_LabelledPair], source: str, scale: Scale, *, dropped: int = 0) -> PairData:
    """Return labelled pairs as one object; pairs without a label are left out and counted."""
    scored = [row for row in rows if row.label is not None]
    if not scored:
        raise DataError(f"{source}: none of {len(rows)} pairs has a label. Check that these are the right files.")
    first, second, labels, subset_names = (list(column) for column in zip(*scored, strict=True))
    return PairData(
        sentences1=first,
        sentences2=second,
        labels=labels,
        subsets=subset_names if any(subset_names) else None,
        kind="binary" if scale == (0, 1) else "scored",
        scale=scale,
        source=source,
        label_column="score",
        dropped=dropped,
        dropped_unlabelled=len(rows) - len(scored),
    )


def _parse_pair(
    path: Path, row: int, first: str, second: str, label: str, scale: Scale, subset: str = "", gold: Path | None = None
) -> _LabelledPair:
    """Return a pair with normalized whitespace, and ``None`` for an empty label; DataError for a bad text or label.

    ``gold`` is the file of the labels, if it is another than ``path``.
    """
    # As SentEval does, whose figures are compared with.
    texts = _normalize_spaces(first), _normalize_spaces(second)
    if not all(texts):
        raise DataError(f"{path}, row {row}: a sentence of the pair is empty. Download the set again.")
    number = to_number(label)
    if label and (number is None or not scale[0] <= number <= scale[1]):
        raise DataError(
            f"{gold or path}, row {row}: a label is a number from {scale[0]:g} to {scale[1]:g}; received "
            f"{label[:40]!r}. Compare the file with its source."
        )
    return _LabelledPair(*texts, number, subset)


def _read_latin1_lines(path: Path) -> list[str]:
    """Return the lines of a Latin-1 file; only a line feed ends a line."""
    try:
        text = path.read_bytes().decode("latin-1")
    except OSError as error:
        raise DataError(f"{path}: this must be a readable file: {error}. Download the set again.") from error
    if not text:
        return []
    return text.removesuffix("\n").split("\n")


def _read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Return the numbered lines of a UTF-8 file."""
    if not path.exists():
        raise DataError(f"{path}: this file belongs to the set and is absent. Download the set again.")
    with table_options():  # published files are in UTF-8
        return iter(list(read_lines(path, carriage_returns=True)))


def _read_cells(path: Path, fewest: int, *, header: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield numbered rows of tab-separated cells, in which quotes are ordinary characters."""
    for number, line in _read_lines(path):
        cells = line.rstrip("\r\n").split("\t")
        if header and number == 1:
            continue
        if len(cells) < fewest:
            raise DataError(
                f"{path}, row {number}: there must be {fewest} fields or more between tabs; this row has "
                f"{len(cells)}: {line.strip()[:60]!r}. Download the set again."
            )
        yield number, cells


def _normalize_spaces(text: str) -> str:
    """Return the text with each run of whitespace replaced by one space."""
    return " ".join(text.split())
