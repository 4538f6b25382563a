"""``samesense.read``, ``doctor`` and ``mine_negatives``: reading data, checking them, and mining hard negatives."""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.api.library_function import library_function
from samesense.choices import Sampling
from samesense.data.conventions.named_columns import check_columns, columns_named_by
from samesense.data.rows.sources import (
    Source,
    as_sources,
    distinct_names,
    in_memory,
    leads_to,
    name_of,
    numbered,
    rereadable,
    short_name,
)
from samesense.data.rows.table_options import Header, Quoting, reads_tables
from samesense.errors import ConfigError, DataError
from samesense.types import Precision

if TYPE_CHECKING:
    from samesense.data import PairData
    from samesense.data.benchmarks.sentences import LabelledSentences
    from samesense.data.detected_kind import DetectedKind
    from samesense.data.sentences import Sentences
    from samesense.data.tuples.data import TupleData
    from samesense.types import Score

logger = logging.getLogger(__name__)

Scale = tuple[float, float]


def labelled_pairs(source: Source, **options: Any) -> PairData:
    """Return labelled pairs as they are, or read by :func:`samesense.data.read_pairs`; log how many were left out."""
    from samesense.data import PairData, read_pairs

    # A command without options of reading has none that drops bad rows.
    pairs = source if isinstance(source, PairData) else read_pairs(source, **(options or {"drop_bad_rows": None}))
    if pairs.dropped or pairs.dropped_unlabelled:
        logger.info(f"{pairs.name}: left out {pairs.dropped} bad and {pairs.dropped_unlabelled} unlabelled rows")
    return pairs


@reads_tables
def read(
    source: Source,
    *,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    label_order: str | None = None,
    label_range: Scale | None = None,
    drop_bad_rows: bool = False,
) -> PairData | TupleData | LabelledSentences | Sentences:
    """Read labelled pairs, triplets, anchors with positives and negatives, sentences with classes, or sentences.

    Args:
        source: one, or a list of several; a file (TSV, CSV, JSON lines, Parquet, text; plain or compressed), a saved
            ``datasets`` folder, a hub name as ``owner/name:split``; a data frame (pandas, polars, Arrow), a
            ``datasets.Dataset``; or rows: tuples such as ``(text, text, score)``, dicts, or texts.
        columns: columns by name: ``"left,right,label"`` of pairs, ``"text,class"`` of sentences, or ``"text"``.
        quoting: ``"csv"``: fields may be in double quotes; ``"none"``: a quote is an ordinary character.
        delimiter: ``"tab"``, ``"comma"``, ``"semicolon"``, ``"bar"``, ``"space"``, or another character.
        header: whether the first line names the columns.
        encoding: encoding of files that are not UTF-8, such as ``"cp1252"``.
        label_order: names of the labels 0, 1, 2 of NLI data, as in ``"entailment,neutral,contradiction"``.
        label_range: lowest and highest label of the scale, such as 0 and 5.
        drop_bad_rows: leave out rows that break a rule, and log how many.

    Returns:
        The type for the detected kind of data, as in ``train`` and ``doctor``; a guess is logged. All kinds can be
        trained on, pairs can be evaluated on.

    Raises:
        DataError: names the source, the row and the likely fix; also for documents, which are not read into memory.
    """
    from samesense.data.detected_kind import KIND_INFO
    from samesense.data.kinds import detect_kind

    # Detection reads the first rows, which an iterator would give only once.
    sources = [rereadable(item) for item in as_sources(source)]
    detected = [detect_kind(item, columns) for item in sources]
    for kind in detected:
        if not kind.sure:
            logger.info(kind.line)
    kinds = {kind.kind for kind in detected}
    if kinds == {"pairs"}:
        options = {"label_order": label_order, "label_range": label_range, "drop_bad_rows": drop_bad_rows}
        return _joined_pairs(sources, detected, options)
    if len(kinds) > 1 or kinds == {"documents"}:
        received = ", ".join(f"{name_of(item)}: {kind.by}" for item, kind in zip(sources, detected, strict=True))
        raise DataError(
            f"Sources are read as one if they hold data of one kind, and no documents; received {received}."
        )
    if label_range or (label_order and kinds != {"tuples"}) or (drop_bad_rows and kinds == {"texts"}):
        raise ConfigError(
            f"label_order, label_range and drop_bad_rows are for labelled data; {name_of(source)} is read as "
            f"{KIND_INFO[detected[0].kind].what}. Leave them out."
        )
    return _unlabelled(sources, detected[0], label_order, drop_bad_rows)


def _joined_pairs(sources: Sequence[Source], detected: Sequence[DetectedKind], options: Mapping[str, Any]) -> PairData:
    """Read sources of labelled pairs, each by its detected columns, and join them."""
    from samesense.data import concat

    datasets = [
        labelled_pairs(source, **{**options, "columns": kind.columns})
        for source, kind in zip(sources, detected, strict=True)
    ]
    if len(datasets) == 1:
        return datasets[0]
    return concat(datasets)


def _unlabelled(
    sources: list[Source], detected: DetectedKind, label_order: str | None, drop_bad_rows: bool
) -> TupleData | LabelledSentences | Sentences:
    """Read data of a detected kind other than labelled pairs."""
    from samesense.data.benchmarks.sentences import read_sentences
    from samesense.data.sentences import read_unlabelled
    from samesense.data.tuples.read import read_tuples

    if detected.kind == "texts":
        return read_unlabelled(sources, columns=detected.columns)
    if detected.kind == "tuples":
        return read_tuples(sources, columns=detected.columns, label_order=label_order, drop_bad_rows=drop_bad_rows)
    if len(sources) > 1:
        raise DataError(f"Sentences with classes are read from one source; received {len(sources)}.")
    return read_sentences(sources[0], columns=detected.columns, drop_bad_rows=drop_bad_rows)


@reads_tables
def doctor(  # noqa: PLR0913 - the flags of the command
    data: Source,
    *,
    against: Source | Sequence[Source] | None = None,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    label_order: str | None = None,
    label_range: Scale | None = None,
    drop_bad_rows: bool = False,
    all_rows: bool = False,
) -> Any:
    """Report what data files of any kind are, and what is wrong with them.

    Args:
        data: files (TSV, CSV, JSON lines, Parquet, text; plain or compressed), folders of documents, saved ``datasets``
            folders, or hub names: labelled pairs, triplets, anchors with lists, sentences with classes, texts, or
            documents; see :func:`samesense.read` for data in memory.
        against: other data that must not share any pair or text with these.
        columns, label_order, label_range, drop_bad_rows: see :func:`samesense.read`.
        all_rows: list all bad rows and all contradicting rows, not only the first few.

    Returns:
        A :class:`~samesense.data.DataReport` of pairs or a :class:`~samesense.data.doctor.KindReport` of other data; a
        list of them for several sources. It prints as lines of text; ``warnings``, ``conflicts`` and ``overlaps`` hold
        the findings to look at.

    Raises:
        BadRowsError: for rows that break a rule; it lists them all.
        DataError: if a source cannot be read.
    """
    from samesense.data.doctor import report_on
    from samesense.recipes.reading import Reading

    options = vars(Reading(columns, label_order, label_range, drop_bad_rows))
    references = [] if against is None else as_sources(against)
    # Numbered, as references are the keys of a dictionary and two may have one name.
    reference_names = numbered([_name(reference) for reference in references])
    named_references = dict(zip(reference_names, map(rereadable, references), strict=True))
    limit = sys.maxsize if all_rows else 5
    sources = as_sources(data)
    # References count too, so that a source differs from a reference of the same file name.
    short_names = [*map(short_name, sources), *map(short_name, references)]
    names = distinct_names(short_names, [*map(_name, sources), *named_references])
    reports = [report_on(source, named_references, limit_reported=limit, **options) for source in sources]
    # Not strict: behind the names of the sources stand those of the references.
    renamed = [_renamed(report, name) for report, name in zip(reports, names, strict=False)]
    if len(renamed) == 1:
        return renamed[0]
    return renamed


def _renamed(report: Any, name: str) -> Any:
    """Return a report named by the end of its path, where other sources have the same file name."""
    if name.endswith(f"/{report.name}"):
        return replace(report, name=name)
    return report


def _name(source: Source) -> str:
    if not in_memory(source):
        return str(source)
    name = getattr(source, "name", None)  # of a frame it may be a column
    if isinstance(name, str) and name:
        return name
    return name_of(source)


@library_function
def mine_negatives(  # noqa: PLR0913 - the flags of the command
    data: Source,
    *,
    model: Any = "default",
    corpus: Source | None = None,
    score: Any = None,
    num_negatives: int = 5,
    range_min: int = 0,
    range_max: int = 100,
    absolute_margin: float | None = None,
    relative_margin: float | None = 0.05,
    max_score: float | None = None,
    min_score: float | None = None,
    sampling: Sampling = "top",
    seed: int = 42,
    columns: str | None = None,
    quoting: Quoting | None = None,
    delimiter: str | None = None,
    header: Header | None = None,
    encoding: str | None = None,
    corpus_columns: str | None = None,
    label_order: str | None = None,
    drop_bad_rows: bool = False,
    precision: Precision = "auto",
) -> TupleData:
    """Find hard negatives for anchors with positives: texts near an anchor that are not its positives.

    Args:
        data: files or hub names of anchors with positives, of pairs labelled 0 and 1, or of NLI pairs; negatives that
            they have stay; see :func:`samesense.read` for data in memory.
        model: encoder that finds near texts: model folder, output of ``train``, hub name or ``"default"``; see
            :func:`samesense.load`.
        corpus: text file or table of further texts that may be negatives, besides the positives and negatives of all
            anchors; see :func:`samesense.read` for texts in memory.
        score: cross-encoder, or another model, whose scores of pairs replace the cosine for all margins and limits;
            ``python-score:module:function`` for a function; see :func:`samesense.load` for models in memory.
        num_negatives: most negatives of an anchor.
        range_min: how many of the nearest texts are skipped.
        range_max: how many of the nearest texts are considered, including the skipped ones.
        absolute_margin: how far below the positive's score a negative's score must be.
        relative_margin: the same as a share of the positive's score: 0.05 admits scores of at most 95 % of it;
            ``None`` for no such margin.
        max_score: highest score of a negative.
        min_score: lowest score of a negative.
        sampling: which of the remaining texts to take: those of the highest scores (``"top"``), or any (``"random"``).
        seed: seed of random sampling.
        columns: columns of the data, as in ``"question,answer"`` or ``"question1,question2,is_duplicate"``.
        corpus_columns: column of the corpus's texts, if several hold texts.
        label_order, drop_bad_rows: see :func:`samesense.read`.
        precision: arithmetic; ``"auto"`` is bfloat16 where the processor supports it.

    Returns:
        Training data for :func:`samesense.train`: ``anchors``, with lists of texts as ``positives`` and ``negatives``.
    """
    from samesense.inference.models.load import load
    from samesense.inference.negatives import Choice
    from samesense.inference.negatives import mine_negatives as run

    choice = Choice(
        num_negatives=num_negatives,
        range_min=range_min,
        range_max=range_max,
        absolute_margin=absolute_margin,
        relative_margin=relative_margin,
        max_score=max_score,
        min_score=min_score,
        sampling=sampling,
        seed=seed,
    )
    # Data and corpus are read first: a mistake in them shows before a model is loaded.
    anchors = _anchors(data, columns=columns, label_order=label_order, drop_bad_rows=drop_bad_rows)
    if isinstance(corpus, set | frozenset):  # which texts there are counts here, and not their rows
        corpus = sorted(corpus)
    with columns_named_by("corpus_columns"):
        texts = () if corpus is None else texts_of(corpus, corpus_columns, drop_bad_rows=drop_bad_rows)
    finder = load(model, precision=precision)
    if not finder.embeds:
        raise ConfigError(
            f"`model` finds texts by their embeddings, and {finder.name} has none: {finder.protocol}. Give it as "
            "`score`."
        )
    return run(anchors, finder, choice, corpus=texts, score=None if score is None else _score_of(score, precision))


def _anchors(data: Source, **options: Any) -> TupleData:
    """Return anchors with positives, converted from pairs where the data are labelled pairs."""
    from samesense.data import PairData
    from samesense.data.detected_kind import KIND_INFO
    from samesense.data.kinds import detect_kind
    from samesense.data.tuples.convert import tuples_of_pairs
    from samesense.data.tuples.data import TupleData
    from samesense.data.tuples.read import read_tuples

    if isinstance(data, TupleData):
        return data
    if isinstance(data, PairData):
        return tuples_of_pairs(data)
    sources = [rereadable(source) for source in as_sources(data)]
    detected = [detect_kind(source, options["columns"]) for source in sources]
    kinds = {kind.kind for kind in detected}
    if kinds == {"pairs"}:
        return tuples_of_pairs(_joined_pairs(sources, detected, options))
    if kinds != {"tuples"}:
        unfit = next(kind for kind in detected if kind.kind != "tuples")
        raise DataError(
            f"Negatives are mined for anchors with positives; {name_of(sources[detected.index(unfit)])} holds "
            f"{KIND_INFO[unfit.kind].what}, by {unfit.by}. Give pairs labelled 0 and 1, or columns anchor and positive."
        )
    return read_tuples(sources, **{**options, "columns": detected[0].columns})


def _score_of(score: Any, precision: Precision) -> Score:
    """Return the function that scores pairs: the given one, or that of a model."""
    from samesense.inference.models.functions import is_function
    from samesense.inference.models.load import load

    scorer: Score = score if is_function(score) else load(score, precision=precision).scores
    return scorer


def _refuse_names_of_files(source: Source) -> None:
    """Raise DataError for a list of names of files, whose names would be taken for the texts."""
    if not isinstance(source, list | tuple) or not source:
        return
    if all(isinstance(name, str) and leads_to(name, Path.is_file) for name in source):
        raise DataError(
            f"A list holds texts here, and {source[0]!r} is a file. Give the name of one file without a list, and join "
            "several files into one."
        )


def texts_of(source: Source, columns: str | None, *, drop_bad_rows: bool | None = None) -> list[str]:
    """Return the texts of a source, in order, and register their row numbers; DataError if one is empty.

    ``drop_bad_rows`` leaves rows without a text out; ``None`` if the caller has no such option. DataError also for a
    set: its texts would come back sorted, in another order than the caller reads them.
    """
    from samesense.data.texts import read_usable
    from samesense.execution.unread import name_rows

    check_columns(columns)
    if isinstance(source, set | frozenset):
        raise DataError(
            f"Rows are identified by their numbers, and a {type(source).__name__} has no order. Give a list: "
            "sorted(texts)."
        )
    _refuse_names_of_files(source)
    usable = read_usable(source, columns, drop_bad_rows=drop_bad_rows)
    name_rows(usable.texts, usable.indices)
    return usable.texts
