"""What a suite is: its task, the data it takes, and the figures that stand for it in a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samesense.data import PairData
from samesense.data.benchmarks.catalogue import WHOLE, Benchmark, part_name
from samesense.data.benchmarks.comparability import NOT_COMPARABLE, remarks
from samesense.data.benchmarks.find import Part
from samesense.data.benchmarks.sentences import LabelledSentences, Loaded
from samesense.evaluation.task import Task


@dataclass(frozen=True)
class Average:
    """An average over data sets that papers print."""

    name: str  # what its result is called
    metric: str  # the metric of its members
    members: tuple[str, ...]  # the data sets, in the order of the papers' columns


@dataclass
class BenchmarkSplits:
    """The splits of benchmarks that were found, each read once, and the settings of their tasks."""

    parts: dict[str, Part]  # the splits by name
    fast: bool = False  # fewer folds in the transfer suite
    loaded: dict[str, Loaded] = field(default_factory=dict)  # what was read of them so far

    def load(self, benchmark: Benchmark, split: str) -> Loaded | None:
        """Return one split, or ``None`` if it was not found."""
        name = part_name(benchmark.name, split)
        if name not in self.loaded and name in self.parts:
            self.loaded[name] = self.parts[name].load()
        return self.loaded.get(name)

    def pairs(self, benchmark: Benchmark, split: str) -> PairData | None:
        """Return one split of a set of pairs, or ``None`` if it was not found."""
        data = self.load(benchmark, split)
        return data if isinstance(data, PairData) else None

    def sentences(self, benchmark: Benchmark, split: str) -> LabelledSentences | None:
        """Return one split of a set of sentences, or ``None`` if it was not found."""
        data = self.load(benchmark, split)
        return data if isinstance(data, LabelledSentences) else None

    def note(self, benchmark: Benchmark, *splits: str, changed: Iterable[str] = ()) -> str:
        """Return what a protocol says of these splits.

        ``splits`` are those behind the figure; ``changed``: other reasons why it cannot be compared with published
        ones.
        """
        facts, differing = [], [*changed]
        for split in splits:
            data = self.load(benchmark, split)
            if data is not None:
                fact, different = remarks(benchmark, split, data)
                facts.append(fact)
                differing += different
        tested = {"test", WHOLE} & set(splits)
        facts += [benchmark.note] if benchmark.note and tested else []
        facts += [NOT_COMPARABLE + ", ".join(differing)] if differing else []
        return "; ".join(facts)


@dataclass(frozen=True, kw_only=True)
class Suite:
    """One way of evaluating models."""

    task: type[Any]  # class of its tasks, which has the suite's name
    data: str  # what it evaluates on, for the documentation
    figures: str  # what it gives, for the documentation
    metrics: tuple[str, ...]  # those that the main tables of a report show
    one_table: bool = False  # whether these metrics stand side by side in one table
    averages: tuple[Average, ...] = ()  # formed over its data sets
    takes_pairs: bool = False  # whether labelled pairs of any origin can take part
    split: str = "test"  # of a benchmark, the split that it evaluates on
    # makes the task of a benchmark where one split of pairs is not all it needs
    from_benchmark: Callable[[BenchmarkSplits, Benchmark], Task | None] | None = None
    from_documents: Callable[[Path, str], Task] | None = None  # makes the task of a file of documents, and names it
    own_tasks: Callable[[], list[Task]] | None = None  # makes its tasks where it needs no data

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
        task: Task = self.task(data, dataset=part_name(benchmark.name, self.split), note=note)
        return task
