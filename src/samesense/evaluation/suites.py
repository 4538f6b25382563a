"""From folders and names to the tasks of every suite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from samesense.data import PairData, read_pairs
from samesense.data.benchmarks.catalogue import BENCHMARKS
from samesense.data.benchmarks.find import INSIDE, Part, file_part, find_parts, hub_parts
from samesense.data.benchmarks.text_variant import text_variant
from samesense.data.documents.sectioned import holds_documents, read_documents
from samesense.data.documents.triplets import section_triplets
from samesense.errors import ConfigError, DataError
from samesense.evaluation.averages import averages
from samesense.evaluation.benchmark_splits import SUITES as BENCHMARK_SUITES
from samesense.evaluation.benchmark_splits import Shelf
from samesense.evaluation.binary import BinaryTask
from samesense.evaluation.geometry import GeometryTask
from samesense.evaluation.ranking import RankingTask
from samesense.evaluation.sections import SectionTask
from samesense.evaluation.sts_task import StsTask
from samesense.types import Task

__all__ = ["SUITES", "Found", "averages", "find_tasks"]

SUITES = (*BENCHMARK_SUITES, "sections")
"""Every suite."""

PER_DOCUMENT, TRIPLET_SEED = 10, 0
"""Triplets drawn from a document in the sections suite, and the seed of the draws."""

OWN_SUITES = ("sts", "ranking", "geometry", "binary")
"""Suites that labelled pairs of any origin can take part in."""

SAVED_BY_DATASETS = "dataset_info.json"
"""A file that marks a folder written by ``save_to_disk``."""


class Found(NamedTuple):
    """What was found.

    Attributes:
        tasks: suite by suite as they were asked for, in the order of the catalogue.
        missing: what a suite also has and was not found, in a language of which something was: ``"sts16"``.
    """

    tasks: list[Task]
    missing: list[str]


def find_tasks(
    sources: str | Path | Sequence[str | Path],
    suites: Sequence[str] = ("sts",),
    *,
    fast: bool = False,
    intervals: bool = True,
) -> Found:
    """Make the tasks of the suites out of the data that is there.

    Args:
        sources: any of: a folder with benchmarks in any layout that ``find_parts`` knows; labelled pairs in a file or
            in a folder saved by ``datasets``; documents with sections in JSON lines; the name of a benchmark
            (``"sts12"``), which is then loaded from the hub; ``owner/name:split`` on the hub. Where two hold the same
            split, the first counts.
        suites: ``"sts"``, ``"ranking"``, ``"geometry"``, ``"binary"``, ``"transfer"``, ``"argument"``,
            ``"sections"``.
        fast: fewer folds in the transfer suite; its figures are then not those of papers.
        intervals: compute bootstrap intervals in the sts suite.

    Returns:
        The tasks, and the names of what was not found. Every protocol names text variant and row counts, and says
        ``not comparable with published figures`` with the reason where that is so.

    Raises:
        ConfigError: if there is no such suite, or a source has no part in any suite asked for.
        DataError: if a source is not found or cannot be read, or a suite has nothing to judge on.
        MissingExtraError: if the hub is needed and ``datasets`` is absent.
    """
    given = [sources] if isinstance(sources, (str, Path)) else list(sources)
    wanted = list(dict.fromkeys(suites))
    unknown = [suite for suite in wanted if suite not in SUITES]
    if unknown or not wanted:
        raise ConfigError(f"The suites are {', '.join(SUITES)}; received {', '.join(unknown) or 'none'}.")
    parts: dict[str, Part] = {}
    own: list[PairData] = []
    documents: list[Task] = []
    for source in given:
        if Path(source).expanduser().is_file() and holds_documents(source):
            _refuse(source, ("sections",), wanted)
            documents.append(_section_task(source))
            continue
        found = _open(source)
        _refuse_unused(source, found, wanted)
        if isinstance(found, PairData):
            own.append(found)
        else:
            parts = {**found, **parts}
    shelf = Shelf(parts, fast, intervals)
    tasks: list[Task] = []
    missing: list[str] = []
    for suite in wanted:
        made, absent = _suite(suite, shelf)
        added, refused = (documents, []) if suite == "sections" else _own_tasks(suite, own, intervals)
        if not made and not added:
            raise _nothing(suite, given, refused)
        tasks += [*made, *added]
        missing += [*absent, *refused]
    return Found(tasks, list(dict.fromkeys(missing)))


def _open(source: str | Path) -> dict[str, Part] | PairData:
    """Return the known splits behind a source, or the pairs of a file or hub name that is none of them."""
    path = Path(source).expanduser()
    if path.is_dir() and not (path / SAVED_BY_DATASETS).exists():
        return find_parts(path)
    if path.is_dir():
        return read_pairs(source)
    if path.is_file():
        part = file_part(path)
        return {part.name: part} if part is not None else read_pairs(source)
    if str(source) in BENCHMARKS:
        return hub_parts(str(source))
    if "/" in str(source) or path.suffix:
        return read_pairs(source)
    raise DataError(
        f"{source}: this is no folder, file, hub name (owner/name:split) or benchmark. Benchmarks: "
        f"{', '.join(BENCHMARKS)}."
    )


def _refuse_unused(source: str | Path, found: dict[str, Part] | PairData, wanted: Sequence[str]) -> None:
    """Raise if something that was named has no part in what was asked for."""
    if isinstance(found, PairData):
        fitting: Sequence[str] = OWN_SUITES
    elif Path(source).expanduser().is_dir():
        return  # it may hold more than is asked for; a suite without any set is refused later
    else:
        fitting = list(dict.fromkeys(suite for part in found.values() for suite in part.benchmark.suites))
    _refuse(source, fitting, wanted)


def _refuse(source: str | Path, fitting: Sequence[str], wanted: Sequence[str]) -> None:
    if not set(fitting) & set(wanted):
        raise ConfigError(
            f"{source}: this belongs to {', '.join(fitting)}, and the suites asked for are {', '.join(wanted)}. "
            "Ask for one of the former as well, or leave it out."
        )


def _section_task(source: str | Path) -> Task:
    triplets = section_triplets(read_documents(source), PER_DOCUMENT, TRIPLET_SEED)
    note = f"at most {PER_DOCUMENT} triplets a document, drawn with seed {TRIPLET_SEED}"
    return SectionTask(triplets, Path(source).name, note=note)


def _suite(suite: str, shelf: Shelf) -> tuple[list[Task], list[str]]:
    """Return the tasks of a suite, and the names of its sets that are absent in the languages at hand."""
    languages = {part.benchmark.language for part in shelf.parts.values()}
    tasks: list[Task] = []
    missing = []
    for benchmark in BENCHMARKS.values():
        if suite not in benchmark.suites or benchmark.language not in languages:
            continue
        task = BENCHMARK_SUITES[suite](shelf, benchmark)
        if task is None:
            missing.append(benchmark.name)
        else:
            tasks.append(task)
    return tasks, missing


def _own_tasks(suite: str, own: Sequence[PairData], intervals: bool) -> tuple[list[Task], list[str]]:
    """Return the tasks of a suite on a user's own pairs, and why other own pairs do not fit it."""
    makers: dict[str, Callable[[PairData, str, str], Task]] = {
        "sts": lambda data, name, note: StsTask(data, dataset=name, note=note, intervals=intervals),
        "ranking": lambda data, name, note: RankingTask(data, dataset=name, note=note),
        "geometry": lambda data, name, note: GeometryTask(data, dataset=name, note=note),
        "binary": lambda data, name, note: BinaryTask(data, dataset=name, note=note),
    }
    count = Counter(data.name for data in own)
    tasks: list[Task] = []
    refused = []
    for data in own if suite in makers else ():
        name = data.name if count[data.name] == 1 else data.source
        try:
            tasks.append(makers[suite](data, name, f"{text_variant(data.sentences1)}, {len(data)} rows"))
        except DataError as error:
            refused.append(f"{suite} on {name} ({error})")
    return tasks, refused


def _nothing(suite: str, given: Sequence[str | Path], refused: Sequence[str]) -> DataError:
    if suite == "sections":
        return DataError(
            "Suite 'sections' needs documents: a file of JSON lines, each an object with sections and their sentences; "
            f"received {', '.join(map(str, given)) or 'no source'}."
        )
    names = [name for name, benchmark in BENCHMARKS.items() if suite in benchmark.suites]
    why = f" Refused: {'; '.join(refused)}." if refused else ""
    return DataError(
        f"Suite {suite!r} has nothing to judge on: none of {', '.join(names)} was found whole in "
        f"{', '.join(map(str, given)) or 'no source'}.{why} A folder holds files such as sts12.test.tsv, SentEval's "
        f"folders, or ATEC/ATEC.test.data and the like; itself or in {', '.join(place for place in INSIDE if place)}."
    )
