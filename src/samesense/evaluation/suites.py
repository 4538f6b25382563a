"""The registry of suites, and the tasks of suites on the data in folders, files and benchmarks by name."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from samesense.data import PairData, read_pairs
from samesense.data.benchmarks.catalogue import BENCHMARKS
from samesense.data.benchmarks.comparability import text_variant
from samesense.data.benchmarks.find import INSIDE, BenchmarkSplit, find_splits, hub_splits, split_of_file
from samesense.data.detected_kind import KIND_INFO
from samesense.data.documents import holds_documents
from samesense.data.kinds import detect_kind
from samesense.data.rows.load import refuse_beir
from samesense.data.rows.sources import (
    Source,
    as_sources,
    distinct_names,
    in_memory,
    leads_to_folder,
    name_of,
    numbered,
    rereadable,
)
from samesense.data.tuples.convert import read_classes, tuples_of_pairs
from samesense.data.tuples.data import TupleData
from samesense.data.tuples.read import read_tuples
from samesense.errors import ConfigError, DataError
from samesense.evaluation import (
    argument,
    binary,
    classes,
    geometry,
    probes,
    ranking,
    retrieval,
    sections,
    sts,
    transfer,
)
from samesense.evaluation.suite import BenchmarkSplits, Suite
from samesense.evaluation.task import Task

SUITES: dict[str, Suite] = {
    module.SUITE.name: module.SUITE
    for module in (sts, transfer, ranking, geometry, binary, argument, sections, retrieval, classes, probes)
}
"""Every suite by name."""

SAVED_BY_DATASETS = ("dataset_info.json", "dataset_dict.json")
"""Files that mark a folder written by ``save_to_disk``; one of them is enough."""

Form = Literal["pairs", "anchors", "classes"]
"""How a source is read."""

logger = logging.getLogger(__name__)


class FoundTasks(NamedTuple):
    """The tasks of the requested suites, and the data that are missing or do not fit.

    Attributes:
        tasks: the tasks, suite by suite in the requested order, in each suite in the order of the catalogue.
        missing: benchmarks of the suites that were not found, such as ``"sts16"``, in the languages of those found.
        unfit: a line for each given source or benchmark that a suite cannot use, with the reason.
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
) -> FoundTasks:
    """Return the tasks of the suites on the given data.

    ``sources`` is one or several of: a folder with benchmarks in any layout that ``find_splits`` supports; labelled
    pairs, anchors with positives, or sentences with classes, in a file, in a folder saved by ``datasets``, in memory
    (see :data:`~samesense.data.rows.sources.Source`), or read already; documents with sections in JSON lines; the name
    of a benchmark (``"sts12"``), which is loaded from the hub; ``owner/name:split`` on the hub. If two have the same
    split, the first counts. ``fast`` uses fewer folds in the transfer suite, so that its figures are not comparable
    with papers. ``reading`` are options for labelled pairs of the user, see :func:`~samesense.data.read_pairs`; with
    any of them set, a file is read as the user's even if its name is that of a benchmark.

    Every protocol names the text variant and the row counts, and says ``not comparable with published figures`` with
    the reason where that is so. ConfigError if there is no such suite, or no requested suite can use any of the data;
    DataError if a source cannot be read, or no suite has data.
    """
    source_list = _source_list(sources)
    requested = _known_suites(suites)
    splits_by_name: dict[str, BenchmarkSplit] = {}
    user_pairs: list[PairData] = []
    anchors: list[TupleData] = []
    documents: list[Path] = []
    names = [suite.name for suite in requested]
    unfit: list[str] = []
    fitting: list[str] = []
    preferred = _preferred_form(requested)
    for source in source_list:
        data = _open(source, reading, preferred=preferred)
        fitting = _fitting_suites(source, data, requested)
        if not set(fitting) & set(names):
            unfit.append(
                f"{_name(source)}: this belongs to {', '.join(fitting)}, and the suites asked for are "
                f"{', '.join(names)}."
            )
        if isinstance(data, PairData):
            user_pairs.append(data)
        elif isinstance(data, TupleData):
            anchors.append(data)
        elif isinstance(data, Path):
            documents.append(data)
        else:
            splits_by_name = {**data, **splits_by_name}  # the first source with a split counts
    if source_list and len(unfit) == len(source_list):
        raise ConfigError(f"{' '.join(unfit)} Ask for suite {fitting[0]}, or give other data.")
    splits = BenchmarkSplits(splits_by_name, fast)
    tasks: list[Task] = []
    missing: list[str] = []
    for suite in requested:
        suite_tasks, suite_missing, refused = _suite_tasks(suite, splits, user_pairs, anchors, documents)
        tasks += suite_tasks
        missing += suite_missing
        if suite_tasks:
            unfit += refused
        else:
            unfit.append(_no_task_message(suite, source_list, refused))
    if not tasks:
        raise DataError(" ".join(unfit))
    return FoundTasks(tasks, list(dict.fromkeys(missing)), unfit)


def _suite_tasks(
    suite: Suite,
    splits: BenchmarkSplits,
    user_pairs: Sequence[PairData],
    anchors: Sequence[TupleData],
    documents: Sequence[Path],
) -> tuple[list[Task], list[str], list[str]]:
    """Return the tasks of a suite, the names of missing benchmarks, and why some data do not fit."""
    if suite.own_tasks is not None:
        return suite.own_tasks(), [], []
    benchmark_tasks, missing, refused_benchmarks = _benchmark_tasks(suite, splits)
    pair_tasks, refused_pairs = _pair_tasks(suite, user_pairs)
    document_tasks: list[Task] = []
    if suite.from_documents:
        names = _names_of([path.name for path in documents], list(map(str, documents)))
        document_tasks = [suite.from_documents(path, name) for path, name in zip(documents, names, strict=True)]
    anchor_tasks, refused_anchors = _anchor_tasks(suite, anchors)
    return (
        [*benchmark_tasks, *document_tasks, *anchor_tasks, *pair_tasks],
        missing,
        [*refused_benchmarks, *refused_anchors, *refused_pairs],
    )


def _anchor_tasks(suite: Suite, anchors: Sequence[TupleData]) -> tuple[list[Task], list[str]]:
    """Return the tasks of a suite on anchors with positives, or on sentences with classes, and why some do not fit."""
    make, fitting = suite.from_anchors, [data for data in anchors if data.classes is None]
    if suite.from_classes:
        make, fitting = suite.from_classes, [data for data in anchors if data.classes is not None]
    if make is None:
        return [], []
    tasks: list[Task] = []
    refused: list[str] = []
    names = _names_of([data.name for data in fitting], [data.source for data in fitting])
    for data, name in zip(fitting, names, strict=True):
        try:
            tasks.append(make(data, name))
        except DataError as error:
            refused.append(f"{suite.name} on {error}")
    return tasks, refused


def _preferred_form(requested: Sequence[Suite]) -> Form:
    """Return how data are read that can be of several forms, such as triplets, or columns that the user names."""
    if all(suite.from_classes for suite in requested):
        return "classes"
    if all(suite.from_anchors for suite in requested):
        return "anchors"
    return "pairs"


def _source_list(sources: Source) -> list[Source]:
    """Return one source or several as a list; a string is always a name, never a text."""
    if isinstance(sources, list | tuple) and all(
        isinstance(source, str | Path | PairData | TupleData) for source in sources
    ):
        return list(sources)
    return as_sources(sources)


def _known_suites(names: Sequence[str]) -> list[Suite]:
    distinct = list(dict.fromkeys(names))
    unknown = [name for name in distinct if name not in SUITES]
    if unknown or not distinct:
        raise ConfigError(f"The suites are {', '.join(SUITES)}; received {', '.join(unknown) or 'none'}.")
    return [SUITES[name] for name in distinct]


def _open(
    source: Source, reading: Mapping[str, Any], *, preferred: Form
) -> dict[str, BenchmarkSplit] | PairData | TupleData | Path:
    """Return the benchmark splits of a source, its pairs, anchors or classes, or the path of a file of documents."""
    if in_memory(source):
        if isinstance(source, PairData | TupleData):
            return source
        return _pairs_or_anchors(source, reading, preferred=preferred)
    path = Path(source).expanduser()
    if path.is_file() and holds_documents(source):
        return path
    if path.is_dir():
        saved = any((path / name).exists() for name in SAVED_BY_DATASETS)
        if saved:
            return _pairs_or_anchors(source, reading, preferred=preferred)
        refuse_beir(path)
        return find_splits(path)
    if path.is_file():
        split = None if any(reading.values()) else split_of_file(path)
        if split is not None:
            return {split.name: split}
        return _pairs_or_anchors(source, reading, preferred=preferred)
    if str(source) in BENCHMARKS:
        return hub_splits(str(source))
    # A hub name, or a file that is missing: reading it gives the message that fits.
    if "/" in str(source) or path.suffix or leads_to_folder(str(source)):
        return _pairs_or_anchors(source, reading, preferred=preferred)
    raise DataError(
        f"{source}: this is no folder, file, hub name (owner/name:split) or benchmark. Benchmarks: "
        f"{', '.join(BENCHMARKS)}."
    )


def _pairs_or_anchors(source: Source, reading: Mapping[str, Any], *, preferred: Form) -> PairData | TupleData:
    """Return the labelled pairs of a source, its anchors or its classes; what can be several is what is preferred."""
    source = rereadable(source)
    if preferred == "classes" and reading.get("columns"):
        return _classes(source, reading["columns"], reading)
    if preferred != "pairs" and (anchors := _anchors(source, reading)) is not None:
        return anchors
    try:
        return _pairs(source, reading)
    except DataError:
        anchors = _anchors(source, reading)
        if anchors is None:
            if not reading.get("columns"):
                _refuse_by_kind(source)
            raise
        return anchors


def _refuse_by_kind(source: Source) -> None:
    """Raise DataError for what no suite evaluates: columns of no kind, and texts without classes."""
    detected = detect_kind(source)
    if detected.kind != "texts":
        return
    raise DataError(
        f"{name_of(source)}: a suite evaluates labelled pairs, anchors with positives, or sentences with classes, and "
        f"these are {KIND_INFO[detected.kind].what}, by {detected.by}. Where a column has their classes, name text and "
        "class by `columns`."
    )


def _anchors(source: Source, reading: Mapping[str, Any]) -> TupleData | None:
    """Return anchors with positives, or with classes; ``None`` of a source of something else or without columns."""
    try:
        detected = detect_kind(source, reading.get("columns"))
    except DataError:
        return None
    if detected.triplets:
        return tuples_of_pairs(_pairs(source, {**reading, "columns": detected.columns}))
    if detected.kind == "tuples":
        return read_tuples(source, columns=detected.columns, drop_bad_rows=bool(reading.get("drop_bad_rows")))
    if detected.kind == "classes":
        return _classes(source, detected.columns, reading)
    return None


def _classes(source: Source, columns: str | None, reading: Mapping[str, Any]) -> TupleData:
    return read_classes(source, columns=columns, drop_bad_rows=bool(reading.get("drop_bad_rows")))


def _pairs(source: Source, reading: Mapping[str, Any]) -> PairData:
    pairs = read_pairs(source, **reading)
    if pairs.dropped or pairs.dropped_unlabelled:
        logger.info(f"{pairs.name}: left out {pairs.dropped} bad and {pairs.dropped_unlabelled} unlabelled rows")
    return pairs


def _fitting_suites(
    source: Source, data: dict[str, BenchmarkSplit] | PairData | TupleData | Path, requested: Sequence[Suite]
) -> list[str]:
    """Return the suites that can use a source."""
    if isinstance(data, PairData):
        return [suite.name for suite in SUITES.values() if suite.takes_pairs]
    if isinstance(data, TupleData) and data.classes is not None:
        return [suite.name for suite in SUITES.values() if suite.from_classes]
    if isinstance(data, TupleData):
        return [suite.name for suite in SUITES.values() if suite.from_anchors]
    if isinstance(data, Path):
        return [suite.name for suite in SUITES.values() if suite.from_documents]
    if Path(str(source)).expanduser().is_dir():
        # A folder may have more than is needed; a suite without any data is reported later.
        return [suite.name for suite in requested]
    return list(dict.fromkeys(suite for split in data.values() for suite in split.benchmark.suites))


def _benchmark_tasks(suite: Suite, splits: BenchmarkSplits) -> tuple[list[Task], list[str], list[str]]:
    """Return the tasks of a suite on benchmarks, the missing benchmarks, and why some do not fit.

    Only benchmarks in the languages of those found count as missing.
    """
    languages = {split.benchmark.language for split in splits.splits.values()}
    tasks: list[Task] = []
    missing = []
    refused = []
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
    """Return unique names, even for sources that occur twice."""
    return numbered(distinct_names(short_names, sources))


def _pair_tasks(suite: Suite, user_pairs: Sequence[PairData]) -> tuple[list[Task], list[str]]:
    """Return the tasks of a suite on a user's pairs, and why some of them do not fit."""
    if not suite.takes_pairs:
        return [], []
    names = _names_of([data.name for data in user_pairs], [data.source for data in user_pairs])
    tasks: list[Task] = []
    refused = []
    for data, name in zip(user_pairs, names, strict=True):
        note = f"{text_variant(data.sentences1)}, {len(data)} rows"
        try:
            tasks.append(suite.task(data, dataset=name, note=note))
        except DataError as error:
            refused.append(f"{suite.name} on {name}: {error}")
    return tasks, refused


def _no_task_message(suite: Suite, sources: Sequence[Source], refused: Sequence[str]) -> str:
    """Return a message that says why a suite has no task."""
    if not sources:
        return f"Suite {suite.name!r} needs `data`: files, folders of benchmarks, or names of benchmarks."
    if refused:
        return f"Suite {suite.name!r} has no data: {' '.join(refused)}"
    received = ", ".join(map(_name, sources))
    if suite.from_documents:
        return (
            f"Suite {suite.name!r} needs documents: a file of JSON lines, each an object with sections and their "
            f"sentences; received {received}."
        )
    if suite.from_anchors:
        return (
            f"Suite {suite.name!r} needs anchors with positives, such as a table of two columns, question and answer; "
            f"received {received}."
        )
    if suite.from_classes:
        return (
            f"Suite {suite.name!r} needs sentences with classes: a table with the columns text and label; received "
            f"{received}."
        )
    names = [name for name, benchmark in BENCHMARKS.items() if suite.name in benchmark.suites]
    return (
        f"Suite {suite.name!r} has no data: none of {', '.join(names)} was found whole in {received}. A folder "
        "holds files such as sts12.test.tsv, SentEval's folders, or ATEC/ATEC.test.data and the like; itself or in "
        f"{', '.join(folder for folder in INSIDE if folder)}."
    )


def _name(source: Source) -> str:
    if isinstance(source, PairData):
        return source.source
    return name_of(source)
