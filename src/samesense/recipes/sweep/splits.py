"""The data of a sweep's cells: read, held out and cut to the rows asked for, always the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from samesense.data import PairData, examine, read_pairs
from samesense.data.benchmarks.comparability import NOT_COMPARABLE, compare_with_published
from samesense.data.benchmarks.find import known_split
from samesense.data.examples import Examples
from samesense.data.rows.sources import distinct_names
from samesense.data.rows.table_options import table_options
from samesense.data.sampling import draw_positions
from samesense.errors import ConfigError, DataError
from samesense.recipes.methods import METHODS, Method
from samesense.recipes.planning.dev_split import hold_out_pairs
from samesense.recipes.reading import Reading
from samesense.recipes.settings import EncoderSettings
from samesense.recipes.sweep.data_entry import DataEntry, TestSource

Rows = TypeVar("Rows", bound=Examples)


@dataclass(frozen=True)
class Splits:
    """The data of one entry, as they are used: parts of the sources where the file asks for that."""

    train: Examples
    dev: PairData | None
    tests: dict[str, PairData]

    def evaluation_data(self) -> dict[str, PairData]:
        """Return the data of evaluation: dev, if there are some, and each test set."""
        return {**({} if self.dev is None else {"dev": self.dev}), **self.tests}

    def _named_by_role(self) -> dict[str, PairData]:
        """Return the data of evaluation by their role and file: a test set may have the name of the training's."""
        evaluated = self.evaluation_data()
        every = [self.train, *evaluated.values()]
        # The first name is that of the training data.
        names = distinct_names([data.name for data in every], [data.source for data in every])[1:]
        roles = ["dev" if data is self.dev else f"test {name}" for name, data in evaluated.items()]
        entries = zip(roles, names, evaluated.values(), strict=True)
        return {f"{role} ({name})": data for role, name, data in entries}

    def warnings(self, entry: DataEntry) -> Iterator[str]:
        """Yield what is to be known of the data of an entry: pairs that leak, and tests that are not as published."""
        if isinstance(self.train, PairData):
            report = examine(self.train, against=self._named_by_role())
            yield from (f"{entry.name}: {warning}" for warning in report.warnings)
        differing: dict[str, list[str]] = {}
        for name, test in self.tests.items():
            published = known_split(test.source)
            if published is None:
                continue
            differences = compare_with_published(*published, test).differences
            if differences:
                differing[name] = differences
        if entry.test_rows is not None and differing:
            yield f"{entry.name}: {NOT_COMPARABLE}{entry.test_rows} rows at most of {', '.join(differing)}"
            return
        yield from (f"{name}: {NOT_COMPARABLE}{', '.join(differences)}" for name, differences in differing.items())

    def identity(self) -> dict[str, Any]:
        """Return the fingerprints."""
        return {
            "train": self.train.sha256,
            "dev": None if self.dev is None else self.dev.sha256,
            "tests": {name: data.sha256 for name, data in self.tests.items()},
        }


def read_splits(
    entry: DataEntry, seed: int, method: Method = METHODS["cosent"], settings: EncoderSettings | None = None
) -> Splits:
    """Read the data of an entry, hold out what selects, and take the rows asked for.

    ``seed`` decides which rows are held out and taken; ``method`` and ``settings`` how the data are read.
    """
    # Other methods have these among their own settings.
    reading = how_of(entry) if method is METHODS["cosent"] else Reading()
    with table_options(entry.table_options()):
        train = method.read([entry.train], settings or method.settings(), reading)
    held_part = entry.held_out()
    dev: PairData | None = None
    if held_part is not None:
        if not isinstance(train, PairData):
            raise ConfigError(
                f"{entry.name}: labelled pairs can be held out for selection, and method {method.name} trains on "
                f'{method.takes}. Give dev = "FILE", or dev = "none".'
            )
        # Before rows are drawn, so that dev is the same for any number of training rows.
        train, dev = hold_out_pairs(train, held_part, seed)
    elif entry.dev != "none":
        dev = _read(entry, entry.dev)
    tests = {name: _read(entry, source) for name, source in entry.tests().items()}
    return Splits(
        sample_rows(train, entry.train_rows, seed),
        None if dev is None else sample_rows(dev, entry.dev_rows, seed),
        {name: sample_rows(data, entry.test_rows, seed) for name, data in tests.items()},
    )


def sample_rows(data: Rows, rows: int | None, seed: int) -> Rows:
    """Return a random sample of ``rows`` rows in their order; all rows if there are no more."""
    if rows is None or rows >= len(data):
        drawn = data
    else:
        drawn = data.take(draw_positions(len(data), rows, seed))
    if isinstance(drawn, PairData) and len(set(drawn.labels)) < 2:
        raise DataError(
            f"{data.source}: all {len(drawn)} labels that are used are {drawn.labels[0]:g}: nothing to rank. Take more "
            "rows."
        )
    return drawn


def _read(entry: DataEntry, source: str | TestSource) -> PairData:
    reading = how_of(entry)
    options = entry.options_of(source)
    if isinstance(source, TestSource):
        reading = replace(reading, columns=source.columns or reading.columns)
        source = source.source
    with table_options(options):
        return read_pairs(source, **vars(reading.for_evaluation(source)))


def how_of(entry: DataEntry) -> Reading:
    """Return how the labelled pairs of an entry are read."""
    return Reading(entry.columns, entry.label_order, entry.label_range, entry.drop_bad_rows)
