"""SentEval's folders as its download script leaves them: every set in the layout it was published in."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from samesense.data.benchmarks.catalogue import WHOLE, Benchmark
from samesense.data.benchmarks.original import (
    LabelledPair,
    Load,
    Loaded,
    both_texts,
    cells_of,
    label_number,
    latin1_lines,
    lines_of,
    pair_data,
    spaced,
)
from samesense.data.benchmarks.sentences import LabelledSentences, labelled_sentences
from samesense.data.pairs.data import PairData
from samesense.errors import DataError

TREC_CLASSES = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")
"""Coarse classes of questions."""

_TWO_FILES = {
    "mr": ("MR/rt-polarity.neg", "MR/rt-polarity.pos"),
    "cr": ("CR/custrev.neg", "CR/custrev.pos"),
    "subj": ("SUBJ/subj.subjective", "SUBJ/subj.objective"),
    "mpqa": ("MPQA/mpqa.neg", "MPQA/mpqa.pos"),
}
"""Files of the classes 0 and 1."""

_SICK = {"train": "train", "dev": "trial", "test": "test_annotated"}
_TREC = {"train": "train_5500", "test": "TREC_10"}


def senteval_part(folder: Path, benchmark: Benchmark, split: str) -> Load | None:
    """Return a reader of one split of a set in a SentEval folder, or ``None`` if it is not there.

    The folder is the one that holds ``STS``, ``SICK``, ``MR`` and so on. Runs of white space become one space, as in
    SentEval, which splits at them.

    Args:
        folder: where to look.
        benchmark: the set.
        split: the split, as in the catalogue.
    """
    name = benchmark.name
    if name.startswith("sts") and name[3:].isdigit() and split == "test":
        return _if_there(folder / "STS" / f"STS{name[3:]}-en-test", partial(_semeval, benchmark=benchmark))
    if name in _TWO_FILES and split == WHOLE:
        negative, positive = (folder / file for file in _TWO_FILES[name])
        return _if_there(negative, partial(_two_files, positive=positive))
    single: dict[str, tuple[str, Callable[[Path], Loaded]]] = {
        "stsb": (f"STS/STSBenchmark/sts-{split}.csv", _sts_benchmark),
        "sickr": (f"SICK/SICK_{_SICK.get(split, split)}.txt", _sick),
        "mrpc": (f"MRPC/msr_paraphrase_{split}.txt", _mrpc),
        "sst2": (f"SST/binary/sentiment-{split}", _sst),
        "trec": (f"TREC/{_TREC.get(split, split)}.label", _trec),
    }
    if name not in single:
        return None
    file, read = single[name]
    return _if_there(folder / file, read)


def _if_there(path: Path, read: Callable[[Path], Loaded]) -> Load | None:
    return partial(read, path) if path.exists() else None


def _semeval(folder: Path, *, benchmark: Benchmark) -> PairData:
    """Read the published subsets of one year; a subset whose two files are absent is left out."""
    scale = benchmark.scale or (0, 5)
    rows: list[LabelledPair] = []
    for subset in benchmark.subsets:
        texts, gold = folder / f"STS.input.{subset}.txt", folder / f"STS.gs.{subset}.txt"
        if not texts.exists() and not gold.exists():
            continue
        pairs, cells = list(cells_of(texts, 2)), [line.strip() for _, line in lines_of(gold)]
        if len(pairs) != len(cells):
            raise DataError(
                f"{gold}: there must be one line for each pair, empty where it has no score; got {len(cells)} lines "
                f"for the {len(pairs)} pairs of {texts.name}. Download the set again."
            )
        for (number, (first, second, *_)), cell in zip(pairs, cells, strict=True):
            label = label_number(cell, gold, number, scale) if cell else None
            rows.append((*both_texts(texts, number, first, second), label, subset))
    return pair_data(rows, str(folder), scale)


def _sts_benchmark(path: Path) -> PairData:
    rows: list[LabelledPair] = []
    for number, cells in cells_of(path, 7):
        label = label_number(cells[4], path, number, (0, 5))
        rows.append((*both_texts(path, number, cells[5], cells[6]), label, "/".join(cells[:3])))
    return pair_data(rows, str(path), (0, 5))


def _sick(path: Path) -> PairData:
    rows: list[LabelledPair] = []
    for number, cells in cells_of(path, 4, header=True):
        rows.append((*both_texts(path, number, cells[1], cells[2]), label_number(cells[3], path, number, (0, 5)), ""))
    return pair_data(rows, str(path), (0, 5))


def _mrpc(path: Path) -> PairData:
    rows: list[LabelledPair] = []
    for number, cells in cells_of(path, 5, header=True):
        rows.append((*both_texts(path, number, cells[3], cells[4]), label_number(cells[0], path, number, (0, 1)), ""))
    return pair_data(rows, str(path), (0, 1))


def _two_files(negative: Path, *, positive: Path) -> LabelledSentences:
    """Read one class a file, class 1 first as SentEval does; an empty line is an empty sentence."""
    texts, classes = [], []
    for path, label in ((positive, "1"), (negative, "0")):
        lines = latin1_lines(path)
        texts += [spaced(line) for line in lines]
        classes += [label] * len(lines)
    return labelled_sentences(texts, classes, str(negative.parent))


def _sst(path: Path) -> LabelledSentences:
    rows = [(spaced(cells[0]), cells[1].strip()) for _, cells in cells_of(path, 2)]
    return labelled_sentences([text for text, _ in rows], [label for _, label in rows], str(path))


def _trec(path: Path) -> LabelledSentences:
    texts, classes = [], []
    for number, line in enumerate(latin1_lines(path), 1):
        label, _, question = line.partition(" ")
        coarse = label.partition(":")[0]
        if coarse not in TREC_CLASSES or not question.strip():
            raise DataError(
                f"{path}, row {number}: a line must be COARSE:fine and a question, the coarse class one of "
                f"{', '.join(TREC_CLASSES)}; received {line[:60]!r}. Compare the file with its source."
            )
        texts.append(spaced(question))
        classes.append(coarse)
    return labelled_sentences(texts, classes, str(path))
