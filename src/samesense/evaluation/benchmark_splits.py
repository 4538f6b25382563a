"""The splits at hand, and the task that each suite makes of a benchmark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from samesense.data import PairData
from samesense.data.benchmarks.catalogue import WHOLE, Benchmark, part_name
from samesense.data.benchmarks.comparability import NOT_COMPARABLE, remarks
from samesense.data.benchmarks.find import Part
from samesense.data.benchmarks.original import Loaded
from samesense.data.benchmarks.sentences import LabelledSentences
from samesense.evaluation.argument import ArgumentTask
from samesense.evaluation.binary import BinaryTask
from samesense.evaluation.geometry import GeometryTask
from samesense.evaluation.ranking import RankingTask
from samesense.evaluation.sts_task import StsTask
from samesense.types import Task


@dataclass
class Shelf:
    """The splits at hand, each read once, and the settings of their tasks.

    Attributes:
        parts: the splits by name.
        fast: fewer folds in the transfer suite.
        intervals: bootstrap intervals in the sts suite.
        read: what was read of them so far.
    """

    parts: dict[str, Part]
    fast: bool
    intervals: bool
    read: dict[str, Loaded] = field(default_factory=dict)

    def take(self, benchmark: Benchmark, split: str) -> Loaded | None:
        """Return one split, or ``None`` if it was not found."""
        name = part_name(benchmark.name, split)
        if name not in self.read and name in self.parts:
            self.read[name] = self.parts[name].load()
        return self.read.get(name)

    def pairs(self, benchmark: Benchmark, split: str) -> PairData | None:
        """Return one split of a set of pairs, or ``None`` if it was not found."""
        data = self.take(benchmark, split)
        return data if isinstance(data, PairData) else None

    def sentences(self, benchmark: Benchmark, split: str) -> LabelledSentences | None:
        """Return one split of a set of sentences, or ``None`` if it was not found."""
        data = self.take(benchmark, split)
        return data if isinstance(data, LabelledSentences) else None

    def note(self, benchmark: Benchmark, *splits: str, changed: Iterable[str] = ()) -> str:
        """Return what a protocol says of these splits.

        Args:
            benchmark: the set.
            splits: those behind the figure; one that was not found is passed over.
            changed: other reasons why the figure cannot be compared with published ones.
        """
        facts, differing = [], [*changed]
        for split in splits:
            data = self.take(benchmark, split)
            if data is not None:
                fact, different = remarks(benchmark, split, data)
                facts.append(fact)
                differing += different
        judged = {"test", WHOLE} & set(splits)
        facts += [benchmark.note] if benchmark.note and judged else []
        facts += [NOT_COMPARABLE + ", ".join(differing)] if differing else []
        return "; ".join(facts)


def _sts(shelf: Shelf, benchmark: Benchmark) -> Task | None:
    data = shelf.pairs(benchmark, "test")
    if data is None:
        return None
    name, note = part_name(benchmark.name, "test"), shelf.note(benchmark, "test")
    return StsTask(data, dataset=name, note=note, intervals=shelf.intervals)


def _ranking(shelf: Shelf, benchmark: Benchmark) -> Task | None:
    data = shelf.pairs(benchmark, "test")
    if data is None:
        return None
    return RankingTask(data, dataset=part_name(benchmark.name, "test"), note=shelf.note(benchmark, "test"))


def _geometry(shelf: Shelf, benchmark: Benchmark) -> Task | None:
    data = shelf.pairs(benchmark, "dev")
    if data is None:
        return None
    return GeometryTask(data, dataset=part_name(benchmark.name, "dev"), note=shelf.note(benchmark, "dev"))


def _binary(shelf: Shelf, benchmark: Benchmark) -> Task | None:
    test = shelf.pairs(benchmark, "test")
    if test is None:
        return None
    fitted_on = "dev" if "dev" in benchmark.rows else "train"
    dev, note = shelf.pairs(benchmark, fitted_on), shelf.note(benchmark, "test", fitted_on)
    return BinaryTask(test, dev, dataset=part_name(benchmark.name, "test"), note=note)


def _argument(shelf: Shelf, benchmark: Benchmark) -> Task | None:
    data = shelf.pairs(benchmark, WHOLE)
    if data is None:
        return None
    return ArgumentTask(data, dataset=benchmark.name, note=shelf.note(benchmark, WHOLE))


def _transfer(shelf: Shelf, benchmark: Benchmark) -> Task | None:
    from samesense.evaluation.transfer import TransferTask

    name, fast = benchmark.name, shelf.fast
    note = shelf.note(benchmark, *benchmark.rows, changed=["5 folds instead of 10"] if fast else [])
    if WHOLE in benchmark.rows:
        whole = shelf.sentences(benchmark, WHOLE)
        return None if whole is None else TransferTask.nested(name, whole.texts, whole.named(), fast, note)
    if benchmark.shape == "sentences":
        train, dev, test = (shelf.sentences(benchmark, split) for split in ("train", "dev", "test"))
        if train is None or test is None or (dev is None and "dev" in benchmark.rows):
            return None
        tuned = None if dev is None else (dev.texts, dev.named())
        return TransferTask.split(name, (train.texts, train.named()), tuned, (test.texts, test.named()), fast, note)
    learnt, judged = shelf.pairs(benchmark, "train"), shelf.pairs(benchmark, "test")
    if learnt is None or judged is None:
        return None
    return TransferTask.pairs(name, (learnt.pairs(), learnt.labels), (judged.pairs(), judged.labels), fast, note)


SUITES: dict[str, Callable[[Shelf, Benchmark], Task | None]] = {
    "sts": _sts,
    "ranking": _ranking,
    "geometry": _geometry,
    "binary": _binary,
    "transfer": _transfer,
    "argument": _argument,
}
"""Every suite by name, with what makes a task of it, or ``None`` if a split that it needs was not found."""
