"""Every suite, and the way from folders, files and names to its tasks and results."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from samesense.data import PairData, read_pairs
from samesense.data.benchmarks.catalogue import BENCHMARKS
from samesense.data.benchmarks.comparability import text_variant
from samesense.data.benchmarks.find import INSIDE, Part, file_part, find_parts, hub_parts
from samesense.data.documents import holds_documents
from samesense.data.formats.memory import Source, as_sources, in_memory, name_of, numbered
from samesense.data.formats.naming import distinct_names
from samesense.errors import ConfigError, DataError
from samesense.evaluation import argument, binary, geometry, probes, ranking, sections, sts, transfer
from samesense.evaluation.suite import BenchmarkSplits, Suite
from samesense.evaluation.task import Task

SUITES: dict[str, Suite] = {
    module.SUITE.name: module.SUITE for module in (sts, transfer, ranking, geometry, binary, argument, sections, probes)
}
"""Every suite by name."""

SAVED_BY_DATASETS = ("dataset_info.json", "dataset_dict.json")
"""Files of which one marks a folder written by ``save_to_disk``."""

logger = logging.getLogger(__name__)


class Found(NamedTuple):
    """What was found.

    Attributes:
        tasks: suite by suite as they were asked for, in the order of the catalogue.
        missing: what a suite also has and was not found, in a language of which something was: ``"sts16"``.
        unfit: a line for each source or set that was given and has no part in a suite, with the reason.
    """

    tasks: list[Task]
    missing: list[str]
    unfit: list[str]


def find_tasks(
    sources: Source,
    suites: Sequence[str] = ("sts",),
    *,
    fast: bool = False,
    reading: Mapping[str, Any] = MappingProxyType({}),
) -> Found:
    """Make the tasks of the suites out of the data that is there.

    ``sources`` is one or several of: a folder with benchmarks in any layout that ``find_parts`` knows; labelled pairs
    in a file, in a folder saved by ``datasets``, in memory (see :data:`~samesense.data.formats.memory.Source`), or read
    already; documents with sections in JSON lines; the name of a benchmark (``"sts12"``), which is then loaded from the
    hub; ``owner/name:split`` on the hub. Where two hold the same split, the first counts. ``fast`` takes fewer folds in
    the transfer suite, whose figures are then not those of papers. ``reading`` says how labelled pairs of one's own are
    read; see :func:`~samesense.data.read_pairs`. With any of it set, a file is one's own whatever its name.

    Every protocol names text variant and row counts, and says ``not comparable with published figures`` with the reason
    where that is so. What does not fit a suite is named with the reason. ConfigError if there is no such suite, or
    nothing that was given has a part in any suite asked for; DataError if a source cannot be read, or no suite has
    data.
    """
    given = _several(sources)
    wanted = _known_suites(suites)
    parts: dict[str, Part] = {}
    own: list[PairData] = []
    documents: list[Path] = []
    unfit: list[str] = []
    for source in given:
        found = _open(source, reading)
        unfit += _unused(source, found, wanted)
        if isinstance(found, PairData):
            own.append(found)
        elif isinstance(found, Path):
            documents.append(found)
        else:
            parts = {**found, **parts}
    if given and len(unfit) == len(given):
        raise ConfigError(f"{' '.join(unfit)} Ask for such a suite, or give other data.")
    splits = BenchmarkSplits(parts, fast)
    tasks: list[Task] = []
    missing: list[str] = []
    for suite in wanted:
        made, absent, refused = _suite_tasks(suite, splits, own, documents)
        tasks += made
        missing += absent
        unfit += refused if made else [_nothing(suite, given, refused)]
    if not tasks:
        raise DataError(" ".join(unfit))
    return Found(tasks, list(dict.fromkeys(missing)), unfit)


def _suite_tasks(
    suite: Suite, splits: BenchmarkSplits, own: Sequence[PairData], documents: Sequence[Path]
) -> tuple[list[Task], list[str], list[str]]:
    """Return the tasks of a suite, names of benchmarks that are absent, and why what is there does not fit."""
    if suite.own_tasks is not None:
        return suite.own_tasks(), [], []
    made, absent, refused = _benchmark_tasks(suite, splits)
    added, more = _pair_tasks(suite, own)
    named = zip(documents, _names_of([path.name for path in documents], list(map(str, documents))), strict=True)
    of_documents = [suite.from_documents(path, name) for path, name in named] if suite.from_documents else []
    return [*made, *of_documents, *added], absent, [*refused, *more]


def _several(sources: Source) -> list[Source]:
    """Return one source or several as a list; of strings each is a name, never a text."""
    if isinstance(sources, list | tuple) and all(isinstance(one, str | Path | PairData) for one in sources):
        return list(sources)
    return as_sources(sources)


def _known_suites(names: Sequence[str]) -> list[Suite]:
    wanted = list(dict.fromkeys(names))
    unknown = [name for name in wanted if name not in SUITES]
    if unknown or not wanted:
        raise ConfigError(f"The suites are {', '.join(SUITES)}; received {', '.join(unknown) or 'none'}.")
    return [SUITES[name] for name in wanted]


def _open(source: Source, reading: Mapping[str, Any]) -> dict[str, Part] | PairData | Path:
    """Return the known splits behind a source, the pairs of a source that is none of them, or a file of documents."""
    if in_memory(source):
        return source if isinstance(source, PairData) else _pairs(source, reading)
    path = Path(source).expanduser()
    if path.is_file() and holds_documents(source):
        return path
    if path.is_dir():
        saved = any((path / name).exists() for name in SAVED_BY_DATASETS)
        return _pairs(source, reading) if saved else find_parts(path)
    if path.is_file():
        part = None if any(reading.values()) else file_part(path)
        return {part.name: part} if part is not None else _pairs(source, reading)
    if str(source) in BENCHMARKS:
        return hub_parts(str(source))
    if "/" in str(source) or path.suffix:
        return _pairs(source, reading)
    raise DataError(
        f"{source}: this is no folder, file, hub name (owner/name:split) or benchmark. Benchmarks: "
        f"{', '.join(BENCHMARKS)}."
    )


def _pairs(source: Source, reading: Mapping[str, Any]) -> PairData:
    pairs = read_pairs(source, **reading)
    if pairs.dropped or pairs.dropped_unlabelled:
        logger.info(f"{pairs.name}: left out {pairs.dropped} bad and {pairs.dropped_unlabelled} unlabelled rows")
    return pairs


def _unused(source: Source, found: dict[str, Part] | PairData | Path, wanted: Sequence[Suite]) -> list[str]:
    """Return a line if something that was named has no part in what was asked for."""
    if isinstance(found, PairData):
        fitting = [suite.name for suite in SUITES.values() if suite.takes_pairs]
    elif isinstance(found, Path):
        fitting = [suite.name for suite in SUITES.values() if suite.from_documents]
    elif Path(str(source)).expanduser().is_dir():
        return []  # it may hold more than is asked for; a suite without any set is named later
    else:
        fitting = list(dict.fromkeys(suite for part in found.values() for suite in part.benchmark.suites))
    names = [suite.name for suite in wanted]
    if set(fitting) & set(names):
        return []
    return [f"{_name(source)}: this belongs to {', '.join(fitting)}, and the suites asked for are {', '.join(names)}."]


def _benchmark_tasks(suite: Suite, splits: BenchmarkSplits) -> tuple[list[Task], list[str], list[str]]:
    """Return the tasks of a suite, its benchmarks that are absent in the languages at hand, and why some do not fit."""
    languages = {part.benchmark.language for part in splits.parts.values()}
    tasks: list[Task] = []
    missing, refused = [], []
    for benchmark in BENCHMARKS.values():
        if suite.name not in benchmark.suites or benchmark.language not in languages:
            continue
        try:
            task = suite.on_benchmark(splits, benchmark)
        except DataError as error:
            refused.append(f"{suite.name} on {benchmark.name}: {error}")
            continue
        if task is None:
            missing.append(benchmark.name)
        else:
            tasks.append(task)
    return tasks, missing, refused


def _names_of(short_names: Sequence[str], sources: Sequence[str]) -> list[str]:
    """Return names that differ, also of sources that occur twice."""
    return numbered(distinct_names(short_names, sources))


def _pair_tasks(suite: Suite, own: Sequence[PairData]) -> tuple[list[Task], list[str]]:
    """Return the tasks of a suite on a user's own pairs, and why other own pairs do not fit it."""
    names = _names_of([data.name for data in own], [data.source for data in own])
    tasks: list[Task] = []
    refused = []
    for data, name in zip(own, names, strict=True) if suite.takes_pairs else ():
        note = f"{text_variant(data.sentences1)}, {len(data)} rows"
        try:
            tasks.append(suite.task(data, dataset=name, note=note))
        except DataError as error:
            refused.append(f"{suite.name} on {name}: {error}")
    return tasks, refused


def _nothing(suite: Suite, given: Sequence[Source], refused: Sequence[str]) -> str:
    """Return why a suite has no task."""
    if not given:
        return f"Suite {suite.name!r} needs `data`: files, folders of benchmarks, or names of benchmarks."
    received = ", ".join(map(_name, given))
    if suite.from_documents:
        return (
            f"Suite {suite.name!r} needs documents: a file of JSON lines, each an object with sections and their "
            f"sentences; received {received}."
        )
    if refused:
        return f"Suite {suite.name!r} has no data: {' '.join(refused)}"
    names = [name for name, benchmark in BENCHMARKS.items() if suite.name in benchmark.suites]
    return (
        f"Suite {suite.name!r} has no data: none of {', '.join(names)} was found whole in {received}. A folder "
        "holds files such as sts12.test.tsv, SentEval's folders, or ATEC/ATEC.test.data and the like; itself or in "
        f"{', '.join(place for place in INSIDE if place)}."
    )


def _name(source: Source) -> str:
    return source.source if isinstance(source, PairData) else name_of(source)
