"""The description of a suite: its task, its data, and its main figures in a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samesense.data import PairData
from samesense.data.benchmarks.catalogue import WHOLE, Benchmark, split_name
from samesense.data.benchmarks.comparability import NOT_COMPARABLE, compare_with_published
from samesense.data.benchmarks.find import BenchmarkSplit
from samesense.data.benchmarks.sentences import LabelledSentences, Loaded
from samesense.data.tuples.data import TupleData
from samesense.evaluation.task import Task


@dataclass(frozen=True)
class Average:
    """An average over data sets, as in the tables of papers."""

    name: str  # name of its result
    metric: str  # metric of its members
    members: tuple[str, ...]  # the data sets, in the order of the papers' columns


@dataclass
class BenchmarkSplits:
    """The splits of benchmarks that were found, each read at most once, and the settings of their tasks."""

    splits: dict[str, BenchmarkSplit]  # the splits by name
    fast: bool = False  # whether to use fewer folds in the transfer suite
    loaded: dict[str, Loaded] = field(default_factory=dict)  # the data of the splits that were read so far

    def load(self, benchmark: Benchmark, split: str) -> Loaded | None:
        """Return one split, or ``None`` if it was not found."""
        name = split_name(benchmark.name, split)
        if name not in self.loaded and name in self.splits:
            self.loaded[name] = self.splits[name].load()
        return self.loaded.get(name)

    def pairs(self, benchmark: Benchmark, split: str) -> PairData | None:
        """Return one split of a set of pairs, or ``None`` if it was not found."""
        data = self.load(benchmark, split)
        if isinstance(data, PairData):
            return data
        return None

    def sentences(self, benchmark: Benchmark, split: str) -> LabelledSentences | None:
        """Return one split of a set of sentences, or ``None`` if it was not found."""
        data = self.load(benchmark, split)
        if isinstance(data, LabelledSentences):
            return data
        return None

    def note(self, benchmark: Benchmark, *splits: str, changed: Iterable[str] = ()) -> str:
        """Return the facts about splits for a protocol, and why the figure is not comparable with published ones.

        ``splits`` are those that the figure depends on; ``changed`` are further reasons.
        """
        facts = []
        differences = [*changed]
        for split in splits:
            data = self.load(benchmark, split)
            if data is not None:
                comparability = compare_with_published(benchmark, split, data)
                facts.append(comparability.facts)
                differences += comparability.differences
        tested = {"test", WHOLE} & set(splits)
        if benchmark.note and tested:
            facts.append(benchmark.note)
        if differences:
            facts.append(NOT_COMPARABLE + ", ".join(differences))
        return "; ".join(facts)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """A kind of evaluation, with the data that it runs on."""

    task: type[Any]  # class of its tasks, which has the suite's name
    data: str  # its data, for the documentation
    figures: str  # its figures, for the documentation
    metrics: tuple[str, ...]  # metrics in the main tables of a report
    one_table: bool = False  # whether these metrics are columns of one table
    averages: tuple[Average, ...] = ()  # averages over its data sets
    takes_pairs: bool = False  # whether it accepts any labelled pairs
    split: str = "test"  # the split of a benchmark that it evaluates on
    # makes the task on a benchmark, if it needs more than one split of pairs
    from_benchmark: Callable[[BenchmarkSplits, Benchmark], Task | None] | None = None
    from_documents: Callable[[Path, str], Task] | None = None  # makes the task on a file of documents, with its name
    from_anchors: Callable[[TupleData, str], Task] | None = None  # makes the task on anchors with positives
    from_classes: Callable[[TupleData, str], Task] | None = None  # makes the task on texts with classes
    own_tasks: Callable[[], list[Task]] | None = None  # makes its tasks, if it brings its own data

    @property
    def name(self) -> str:
        """Name of the suite."""
        return str(self.task.suite)

    def on_benchmark(self, splits: BenchmarkSplits, benchmark: Benchmark) -> Task | None:
        """Return the task on a benchmark, or ``None`` if a split that it needs was not found."""
        if self.from_benchmark is not None:
            return self.from_benchmark(splits, benchmark)
        data = splits.pairs(benchmark, self.split)
        if data is None:
            return None
        note = splits.note(benchmark, self.split)
        task: Task = self.task(data, dataset=split_name(benchmark.name, self.split), note=note)
        return task
