"""``samesense.read`` and ``samesense.doctor``: data from anywhere, and what is wrong with them."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from samesense.data.formats.memory import Source, as_sources, holds_sentences, in_memory, name_of
from samesense.errors import ConfigError

if TYPE_CHECKING:
    from samesense.data import PairData
    from samesense.data.sentences import Sentences

logger = logging.getLogger(__name__)

Scale = tuple[float, float]


def labelled_pairs(source: Source, **how: Any) -> PairData:
    """Return labelled pairs: those given, or read by :func:`samesense.data.read_pairs`; logs what was left out."""
    from samesense.data import PairData, read_pairs

    pairs = source if isinstance(source, PairData) else read_pairs(source, **how)
    if pairs.dropped or pairs.dropped_unlabelled:
        logger.info(f"{pairs.name}: left out {pairs.dropped} bad and {pairs.dropped_unlabelled} unlabelled rows")
    return pairs


def read(
    source: Source,
    *,
    columns: str | None = None,
    label_order: str | None = None,
    label_range: Scale | None = None,
    drop_bad_rows: bool = False,
) -> PairData | Sentences:
    """Read labelled pairs, triplets, or unlabelled sentences.

    Args:
        source: one, or a list of several; a file (TSV, CSV, JSON lines, Parquet, text; plain or .gz), a saved
            ``datasets`` folder, a hub name as ``owner/name:split``; a data frame (pandas, polars, Arrow), a
            ``datasets.Dataset``; or rows: tuples such as ``(text, text, score)``, dicts, or texts.
        columns: text and label columns by name, as in ``"left,right,same"``, or the one column of unlabelled sentences.
        label_order: names of the labels 0, 1, 2 of NLI data, as in ``"entailment,neutral,contradiction"``.
        label_range: lowest and highest label of the scale, as in ``(0, 5)``.
        drop_bad_rows: leave out rows that break a rule, and count them.

    Returns:
        Sentences for text files, lists of texts and a single column, else pairs; both can be trained on, pairs can be
        evaluated on.

    Raises:
        DataError: names the source, the row and the likely fix.
    """
    sources = as_sources(source)
    if all(map(holds_sentences, sources)) or (columns is not None and "," not in columns):
        if label_order or label_range or drop_bad_rows:
            raise ConfigError(
                f"label_order, label_range and drop_bad_rows are for labelled pairs; {name_of(source)} is read as "
                "unlabelled sentences. Leave them out."
            )
        from samesense.data.sentences import read_unlabelled

        return read_unlabelled(sources, columns=columns)
    from samesense.data import concat

    how = {"columns": columns, "label_order": label_order, "label_range": label_range, "drop_bad_rows": drop_bad_rows}
    return concat([labelled_pairs(one, **how) for one in sources])


def doctor(
    data: Source,
    *,
    against: Source | Sequence[Source] | None = None,
    columns: str | None = None,
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

    how = {"columns": columns, "label_order": label_order, "label_range": label_range, "drop_bad_rows": drop_bad_rows}
    others = {_name(other): other for other in ([] if against is None else as_sources(against))}
    limit = sys.maxsize if all_rows else 5
    reports = [report_on(one, others, limit_reported=limit, **how) for one in as_sources(data)]
    return reports[0] if len(reports) == 1 else reports


def _name(source: Source) -> str:
    return getattr(source, "name", "") or name_of(source) if in_memory(source) else str(source)
