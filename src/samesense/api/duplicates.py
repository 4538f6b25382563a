"""``samesense.dedup`` and ``samesense.match``: near-duplicates of one list of texts, and matches between two."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.api.data import labelled_pairs, texts_of
from samesense.api.library_function import library_function
from samesense.choices import Chunk, DedupBy, ExecutorName, Keep, SearchMethod, Threshold, check_named
from samesense.data.conventions.named_columns import columns_named_by
from samesense.data.rows.sources import Source, names_among
from samesense.data.rows.table_options import Header, Quoting
from samesense.errors import ConfigError
from samesense.execution.progress import stage
from samesense.types import Precision

if TYPE_CHECKING:
    from samesense.inference.duplicates.dedup import Deduplicated
    from samesense.inference.duplicates.match import Matched
    from samesense.inference.duplicates.vector_shards import Sharing
    from samesense.inference.models.model import Model
    from samesense.reports.text_map import TextMap

logger = logging.getLogger(__name__)


@library_function
def dedup(  # noqa: PLR0913 - the flags of the command
    source: Source,
    *,
    model: Any = "default",
    threshold: Threshold | None = None,
    min_precision: float | None = None,
    pairs: Source | None = None,
    by: DedupBy = "representative",
    keep: Keep = "first",
    search: SearchMethod = "auto",
    work: str | Path | None = None,
    map: str | Path | None = None,  # noqa: A002 - the flag's name
    chunk: Chunk | None = None,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    precision: Precision = "auto",
    executor: ExecutorName | None = None,
    workers: int | None = None,
    address: str | None = None,
) -> Deduplicated:
    """Find near-duplicate texts, and keep one of each.

    Args:
        source: text file with one text a line (plain or compressed), a table (TSV, CSV, JSON lines, Parquet), or
            ``"-"`` for lines of standard input; see :func:`samesense.read` for texts in memory.
        model: model folder, output of ``train``, hub name or ``"default"``; see :func:`samesense.load`.
        threshold: lowest cosine of near-duplicates, from -1 to 1, by default 0.9; ``"calibrated"`` is that of the
            model's calibration.
        min_precision: instead of a threshold, the one from the calibration, or from ``pairs``, with the highest recall
            at this precision, such as 0.95.
        pairs: a few labelled pairs, 1 for the same and 0 for not, on which the threshold of best F1 is chosen.
        by: ``"representative"`` keeps a text unless it is close to one that is kept; ``"linked"`` keeps one text of
            each connected group of pairs, so that the ends of a chain need not be close.
        keep: which text of a group is kept: the first, the longest, or (``"central"``) the one that is close to most
            rows.
        search: compare all pairs (``"exact"``), or each text with its near ones only (``"approximate"``); ``"auto"`` is
            approximate above 50,000 different texts.
        work: folder that caches vectors and neighbours, for other thresholds of the same texts.
        map: file for a map of the groups, a self-contained HTML page on which near texts lie close; of more than 2,000
            different texts it shows the largest groups and a sample.
        chunk: split texts longer than the model's maximum length into windows, and take the ``"mean"`` of their
            vectors, or the ``"max"`` of each dimension; by default the rest is ignored, and texts that differ there
            are not the same.
        columns: name of the table's column of texts, if several hold texts.
        precision: arithmetic; ``"auto"`` is bfloat16 where the processor supports it.
        executor: shares an approximate search among workers of one thread each: ``"embedded"``, processes on this
            machine, or ``"ray"``, a Ray cluster. Finished work is kept in ``work``, which all machines must see; the
            same call resumes.
        workers: processes on this machine, by default one per processor; shares the search as well.
        address: of a running Ray cluster, ``"auto"`` or ``"HOST:PORT"``; by default one is started on this machine.

    Returns:
        Row positions from 0: ``kept``, ``removed`` with the kept row and the score, and ``groups``.
        ``with_threshold`` returns them for another threshold without computing again.
    """
    from samesense.inference.duplicates.dedup import dedup as run
    from samesense.inference.names import place_of
    from samesense.reports.maps import check_mapped, holding_map, save_map

    inputs = [*names_among(source), *names_among(pairs), *(place_of(name) for name in names_among(model))]
    with holding_map(map, inputs):
        work_folder = None if work is None else Path(work)
        sharing = _sharing(model, precision, executor, workers, address, work_folder)
        texts = texts_of(source, columns)
        if map is not None:
            check_mapped(texts)
        # The folder is keyed by the model's fingerprint, which needs torch in any case.
        compared = None if work is not None else texts
        encoder, lowest = _load_with_threshold(model, threshold, min_precision, pairs, precision, compared)
        deduplicated = run(
            texts, encoder, lowest, by=by, keep=keep, search=search, work=work_folder, chunk=chunk, sharing=sharing
        )
        _say_unmerged(len(deduplicated.unmerged), "kept", chunk)
        if map is not None:
            with stage("drawing the map"):
                save_map(_map_of(deduplicated, encoder.name), map)
        return deduplicated


def _sharing(
    model: Any,
    precision: Precision,
    executor: ExecutorName | None,
    workers: int | None,
    address: str | None,
    work: Path | None,
) -> Sharing | None:
    """Return how a search is shared among workers; ``None`` if it is done in this process."""
    from samesense.execution.shards.executors import choose_executor
    from samesense.execution.threads import cores
    from samesense.inference.duplicates.vector_shards import Sharing

    if executor is None and workers is None and address is None:
        return None
    chosen = choose_executor(executor or "embedded", workers=workers, address=address, default_workers=cores())
    if work is None:
        raise ConfigError(
            "executor, workers and address share a search whose finished work is kept in a folder that all machines "
            "see; received none. Name it with `work`."
        )
    return Sharing(chosen, check_named(model), precision)


def _map_of(deduplicated: Deduplicated, model: str) -> TextMap:
    from samesense.reports.maps import map_duplicates

    distinct = deduplicated.distinct
    return map_duplicates(
        distinct.texts,
        distinct.copies,
        distinct.of_row[deduplicated.kept_by[distinct.first_row]],
        deduplicated.scores[distinct.first_row],
        deduplicated.vectors,
        summary=str(deduplicated),
        model=model,
    )


@library_function
def match(  # noqa: PLR0913 - the flags of the command
    source: Source,
    target: Source,
    *,
    model: Any = "default",
    threshold: Threshold | None = None,
    min_precision: float | None = None,
    pairs: Source | None = None,
    top: int = 1,
    one_to_one: bool = False,
    search: SearchMethod = "auto",
    work: str | Path | None = None,
    chunk: Chunk | None = None,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    target_columns: str | None = None,
    precision: Precision = "auto",
    executor: ExecutorName | None = None,
    workers: int | None = None,
    address: str | None = None,
) -> Matched:
    """Find for each text of one source the texts of another with the same meaning.

    Args:
        source: text file with one text a line (plain or compressed), a table (TSV, CSV, JSON lines, Parquet), or
            ``"-"`` for lines of standard input; see :func:`samesense.read` for texts in memory.
        target: the texts to search for matches, in the same forms.
        model, min_precision, pairs, work, chunk, precision, executor, workers, address: see :func:`dedup`.
        threshold: lowest cosine of a match, from -1 to 1, by default 0.9; ``"calibrated"`` is that of the model's
            calibration.
        top: most matches of a row.
        one_to_one: match no row of ``target`` twice: the closest two rows first, then the closest of the rest.
        search: compare all pairs (``"exact"``), or each text with its near ones only (``"approximate"``); ``"auto"`` is
            approximate above 50,000 different texts of ``target``.
        columns: name of the column of texts in ``source``, if several hold texts.
        target_columns: the same in ``target``.

    Returns:
        Row positions from 0: ``pairs`` of both lists with the score, and ``unmatched`` rows of the first.
        ``with_threshold`` returns them for another threshold without computing again.
    """
    from samesense.inference.duplicates.match import check_top
    from samesense.inference.duplicates.match import match as run

    # Before anything is read: two large files may take minutes.
    check_top(top, one_to_one=one_to_one)
    work_folder = None if work is None else Path(work)
    sharing = _sharing(model, precision, executor, workers, address, work_folder)
    texts = texts_of(source, columns)
    with columns_named_by("target_columns"):
        targets = texts_of(target, target_columns)
    compared = None if work is not None else [*texts, *targets]
    encoder, lowest = _load_with_threshold(model, threshold, min_precision, pairs, precision, compared)
    matched = run(
        texts,
        targets,
        encoder,
        lowest,
        top=top,
        one_to_one=one_to_one,
        search=search,
        work=work_folder,
        chunk=chunk,
        sharing=sharing,
    )
    _say_unmerged(len(matched.unmerged), "not matched with them", chunk)
    return matched


def _say_unmerged(count: int, what: str, chunk: Chunk | None) -> None:
    """Warn of texts that are close but were not merged, because they differ in parts that the model did not read."""
    if count:
        fix = "`chunk` reads long texts to their ends; else take" if chunk is None else "Take"
        logger.warning(
            f"{count} texts are close to others that differ from them in what the model did not read, and are {what}. "
            f"{fix} a model that reads more of a text, or knows its signs."
        )


def _load_with_threshold(
    model: Any,
    threshold: Threshold | None,
    min_precision: float | None,
    pairs: Source | None,
    precision: Precision,
    texts: Sequence[str] | None,
) -> tuple[Model, float]:
    """Return the model and the threshold; options are checked before the model is loaded, where possible.

    ``texts`` are all texts to compare, ``None`` where the model's fingerprint is needed, which torch computes.
    """
    from samesense.inference.duplicates.threshold import check_one, known_threshold, threshold_from
    from samesense.inference.models.load import load
    from samesense.inference.search.mining import check_threshold

    check_one(threshold, min_precision, pairs is not None)
    if pairs is None:
        lowest = known_threshold(model, threshold, min_precision)
        # Before the model is loaded, which takes far longer.
        check_threshold(lowest)
        return load(model, precision=precision, texts=texts), lowest
    labelled = labelled_pairs(pairs)
    encoder = load(model, precision=precision)
    return encoder, threshold_from(labelled, encoder, min_precision)
