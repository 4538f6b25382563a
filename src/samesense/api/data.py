"""``samesense.read``, ``doctor`` and ``mine_negatives``: data from anywhere, what is wrong with them, and more."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from samesense.choices import check_choice, check_columns
from samesense.data.formats.memory import Source, as_sources, in_memory, name_of, numbered, rereadable, short_name
from samesense.data.formats.naming import distinct_names
from samesense.data.formats.options import Header, Quoting, reads_tables
from samesense.data.kinds import MEANINGS, Told, tell
from samesense.errors import ConfigError, DataError
from samesense.execution.unread import says_unread

if TYPE_CHECKING:
    from samesense.data import PairData
    from samesense.data.benchmarks.sentences import LabelledSentences
    from samesense.data.sentences import Sentences
    from samesense.data.tuples.data import TupleData
    from samesense.inference.negatives import Sampling
    from samesense.types import Precision, Score

logger = logging.getLogger(__name__)

Scale = tuple[float, float]


def labelled_pairs(source: Source, **how: Any) -> PairData:
    """Return labelled pairs: those given, or read by :func:`samesense.data.read_pairs`; logs what was left out."""
    from samesense.data import PairData, read_pairs

    pairs = source if isinstance(source, PairData) else read_pairs(source, **how)
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
        columns: text and label columns by name, as in ``"left,right,same"``; of other data as in :func:`doctor`.
        quoting: of ``.tsv`` and ``.csv``: ``"csv"`` for fields in double quotes, with quotes in them doubled;
            ``"none"`` where quotes are characters like any other.
        delimiter: the character between the fields of ``.tsv`` and ``.csv``, or its name: ``"tab"``, ``"comma"``,
            ``"semicolon"``, ``"bar"``, ``"space"``.
        header: whether the first line of ``.tsv`` and ``.csv`` has the names of the columns, ``"yes"`` or ``"no"``.
        encoding: of text files and tables, such as ``"cp1252"``, where it is not UTF-8.
        label_order: names of the labels 0, 1, 2 of NLI data, as in ``"entailment,neutral,contradiction"``.
        label_range: lowest and highest label of the scale, as in ``(0, 5)``.
        drop_bad_rows: leave out rows that break a rule, and count them.

    Returns:
        What the data are, as ``train`` and ``doctor`` tell it; a guess is logged. All can be trained on, pairs can be
        evaluated on.

    Raises:
        DataError: names the source, the row and the likely fix; also for running documents, which are not held.
    """
    from samesense.data import concat

    check_columns(columns)
    sources = [rereadable(one) for one in as_sources(source)]
    told = [tell(one, columns) for one in sources]
    for one in told:
        if not one.sure:
            logger.info(one.line)
    kinds = {one.kind for one in told}
    if kinds == {"pairs"}:
        how = {"label_order": label_order, "label_range": label_range, "drop_bad_rows": drop_bad_rows}
        parts = zip(sources, told, strict=True)
        return concat([labelled_pairs(one, columns=own.columns, **how) for one, own in parts])
    if len(kinds) > 1 or kinds == {"documents"}:
        found = ", ".join(f"{name_of(one)}: {own.by}" for one, own in zip(sources, told, strict=True))
        raise DataError(f"Sources are read as one if they hold data of one kind, and no documents; received {found}.")
    if label_range or (label_order and kinds != {"tuples"}) or (drop_bad_rows and kinds == {"texts"}):
        raise ConfigError(
            f"label_order, label_range and drop_bad_rows are for labelled data; {name_of(source)} is read as "
            f"{MEANINGS[told[0].kind].what}. Leave them out."
        )
    return _unlabelled(sources, told[0], label_order, drop_bad_rows)


def _unlabelled(
    sources: list[Source], told: Told, label_order: str | None, drop_bad_rows: bool
) -> TupleData | LabelledSentences | Sentences:
    """Read what is told to be no labelled pairs."""
    from samesense.data.benchmarks.sentences import read_sentences
    from samesense.data.sentences import read_unlabelled
    from samesense.data.tuples.read import read_tuples

    if told.kind == "texts":
        return read_unlabelled(sources, columns=told.columns)
    if told.kind == "tuples":
        return read_tuples(sources, columns=told.columns, label_order=label_order, drop_bad_rows=drop_bad_rows)
    if len(sources) > 1:
        raise DataError(f"Sentences with classes are read from one source; received {len(sources)}.")
    return read_sentences(sources[0], columns=told.columns, drop_bad_rows=drop_bad_rows)


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
    """Report what data of any kind are, and what is wrong with them.

    Args:
        data: one source or a list of several: labelled pairs, triplets, anchors with lists of positives and negatives,
            sentences with a class each, texts, or documents, also a folder of them.
        against: other data in which none of it should stand: pairs in pairs, texts in texts.
        columns: first,second,label of pairs, text,class of sentences with classes, or the column of texts.
        label_order, label_range, drop_bad_rows: see :func:`samesense.read`.
        all_rows: name every bad row in an error, not the first few.

    Returns:
        A :class:`~samesense.data.DataReport` of pairs or a :class:`~samesense.data.doctor.KindReport` of what else; a
        list of them for several sources. It prints as lines of text; ``warnings``, ``conflicts`` and ``overlaps`` hold
        what should be looked at.

    Raises:
        BadRowsError: for rows that break a rule; it holds them all.
        DataError: if a source cannot be read.
    """
    from samesense.data.doctor import report_on

    check_columns(columns)
    how = {"columns": columns, "label_order": label_order, "label_range": label_range, "drop_bad_rows": drop_bad_rows}
    given = [] if against is None else as_sources(against)
    others = dict(zip(numbered([_name(other) for other in given]), map(rereadable, given), strict=True))
    limit = sys.maxsize if all_rows else 5
    sources = as_sources(data)
    names = distinct_names([*map(short_name, sources), *map(short_name, given)], [*map(_name, sources), *others])
    reports = [report_on(source, others, limit_reported=limit, **how) for source in sources]
    renamed = [_renamed(report, name) for report, name in zip(reports, names, strict=False)]
    return renamed[0] if len(renamed) == 1 else renamed


def _renamed(report: Any, name: str) -> Any:
    """Return a report under the end of a path, where other sources have the name of its file."""
    return replace(report, name=name) if name.endswith(f"/{report.name}") else report


def _name(source: Source) -> str:
    name = getattr(source, "name", None)  # a frame's may be a column
    return (name if isinstance(name, str) and name else name_of(source)) if in_memory(source) else str(source)


@says_unread
@reads_tables
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
    """Find hard negatives for anchors with positives: texts near an anchor that are none of its positives.

    Args:
        data: anchors with one or several positives, also with negatives, which stay; pairs labelled 0 and 1; NLI pairs.
        model: finds what is near; whatever :func:`samesense.load` takes and has embeddings.
        corpus: further texts that may be negatives, beside the positives and negatives of all anchors.
        score: scores pairs in place of the model's cosine, for all margins and limits: a cross-encoder or another model
            (whatever :func:`samesense.load` takes), or a function from pairs to scores.
        num_negatives: negatives an anchor gets, at most.
        range_min: so many of the nearest texts are passed over.
        range_max: nearest texts that are considered, those included.
        absolute_margin: how much lower than the positive's a negative's score must be.
        relative_margin: the same as a share of the positive's score: 0.05 lets in what has 95 % of it; ``None``: no
            such margin.
        max_score: highest score of a negative.
        min_score: lowest score of a negative.
        sampling: of what is left, the highest scores (``"top"``), or any (``"random"``).
        seed: of random sampling.
        columns: of the data, as in ``"question,answer"`` or ``"question1,question2,is_duplicate"``.
        corpus_columns: column of the corpus's texts, if several hold texts.
        label_order, drop_bad_rows: see :func:`samesense.read`.
        precision: arithmetic; auto is bfloat16 where the processor computes in it.

    Returns:
        What :func:`samesense.train` takes: ``anchors``, ``positives`` and ``negatives``, a list of texts each.
    """
    from samesense.api.use import texts_of
    from samesense.inference.models.load import load
    from samesense.inference.negatives import Choice, Sampling
    from samesense.inference.negatives import mine_negatives as run

    check_columns(columns)
    check_choice("sampling", sampling, Sampling)
    choice = Choice(
        num_negatives=num_negatives, range_min=range_min, range_max=range_max, absolute_margin=absolute_margin,
        relative_margin=relative_margin, max_score=max_score, min_score=min_score, sampling=sampling, seed=seed,
    )  # fmt: skip
    anchors = _anchors(data, columns=columns, label_order=label_order, drop_bad_rows=drop_bad_rows)
    texts = () if corpus is None else texts_of(corpus, corpus_columns)
    finder = load(model, precision=precision)
    if not finder.embeds:
        raise ConfigError(
            f"`model` finds texts by their embeddings, and {finder.name} has none: {finder.protocol}. Give it as "
            "`score`."
        )
    return run(anchors, finder, choice, corpus=texts, score=None if score is None else _score_of(score, precision))


def _anchors(data: Source, **how: Any) -> TupleData:
    """Return anchors with positives, of whatever says what they are."""
    from samesense.data import PairData, concat
    from samesense.data.tuples.convert import tuples_of_pairs
    from samesense.data.tuples.data import TupleData
    from samesense.data.tuples.read import read_tuples

    if isinstance(data, TupleData):
        return data
    if isinstance(data, PairData):
        return tuples_of_pairs(data)
    sources = [rereadable(one) for one in as_sources(data)]
    told = [tell(source, how["columns"]) for source in sources]
    kinds = {one.kind for one in told}
    if kinds == {"pairs"}:
        read = (labelled_pairs(s, **{**how, "columns": one.columns}) for s, one in zip(sources, told, strict=True))
        return tuples_of_pairs(concat(list(read)))
    if kinds != {"tuples"}:
        other = next(one for one in told if one.kind != "tuples")
        raise DataError(
            f"Negatives are mined for anchors with positives; {name_of(sources[told.index(other)])} holds "
            f"{MEANINGS[other.kind].what}, by {other.by}. Give pairs labelled 0 and 1, or columns anchor and positive."
        )
    return read_tuples(sources, **{**how, "columns": told[0].columns})


def _score_of(score: Any, precision: Precision) -> Score:
    """Return a score of pairs: a function as it is, of a model its own."""
    from samesense.inference.models.functions import is_function
    from samesense.inference.models.load import load

    found: Score = score if is_function(score) else load(score, precision=precision).scores
    return found
