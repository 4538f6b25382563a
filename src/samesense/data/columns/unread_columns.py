"""Columns that are not read: a warning for those with texts, a line for the others."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence, Set

from samesense.data.columns.text_columns import (
    ANSWERS,
    NO_TEXTS,
    SPLIT_NAMES,
    are_texts,
    has_repeated_values,
    nested_texts,
    sniffed_rows,
)
from samesense.data.conventions.column_names import is_identifier, normalize_name
from samesense.data.conventions.named_columns import MOST_NAMED, join_names, listed
from samesense.data.conventions.texts import PYTHON_BYTES
from samesense.data.rows.columnar import may_hold_texts
from samesense.data.rows.load import names_in
from samesense.failures import excerpt
from samesense.types import Row

logger = logging.getLogger(__name__)

_UNREAD = set[tuple[str, ...]]()
"""Source, columns read and columns not read of each message that was logged, so that it is logged only once."""

_UNREAD_ROWS = 100
"""Rows that are inspected to decide whether an unread column holds texts."""


def log_unread(
    rows: Sequence[Row],
    columns: Sequence[str],
    source: str,
    fix: str = "",
    *,
    besides: Sequence[str] = (),
    metadata: bool = True,
    labels: bool = False,
) -> None:
    """Log which columns are not read: a warning for columns with texts (not classes), one info line for the others.

    Args:
        rows: the first rows of the source.
        columns: the columns that are read.
        source: name of the source in messages.
        fix: how to read other columns, for the warning.
        besides: columns that another message already covers.
        metadata: whether to name columns without texts too; ``False`` where the output may include them.
        labels: whether to name columns with names of labels too, which another message covers mostly.
    """
    first_rows = rows[:_UNREAD_ROWS]
    warn_of_bytes(first_rows, columns, source)
    read = {*columns, *besides}
    unread = [name for name in names_in(first_rows) if name not in read and name.strip()]
    key = (source, *columns, "", *unread)
    if not unread or key in _UNREAD:
        return
    _UNREAD.add(key)
    reportable = [name for name in unread if normalize_name(name) not in NO_TEXTS]
    texts = [name for name in reportable if _is_unread_text(first_rows, name)]
    text_set = set(texts)
    without_texts = [name for name in reportable if name not in text_set]
    if texts:
        logger.warning(_unread_warning(texts, columns, source, fix))
    _warn_of_marks(rows, [*read, *texts], source)
    if labels:
        without_texts += [name for name in unread if normalize_name(name) in NO_TEXTS]
    if without_texts and metadata:
        logger.info(f"{source}: not read: {listed(without_texts, MOST_NAMED)}")


def warn_of_marked_rows(rows: Sequence[Row], columns: Collection[str], source: str) -> None:
    """Warn once of a column besides those that are read which says of each row what must be known to use it.

    That is its split, such as train and test, or whether an annotator accepted it. Texts that are read are looked at
    too, see :func:`warn_of_bytes`.
    """
    warn_of_bytes(rows, columns, source)
    _warn_of_marks(rows, columns, source)


def _warn_of_marks(rows: Sequence[Row], columns: Collection[str], source: str) -> None:
    # More of them than for texts: files are often sorted by such a column.
    first_rows = sniffed_rows(rows)
    for name in names_in(first_rows):
        key = (source, "split", name)
        if name in columns or key in _UNREAD:
            continue
        warning = _splits_warning(first_rows, name) or _answers_warning(first_rows, name)
        if warning:
            _UNREAD.add(key)
            logger.warning(f"{source}: column {name!r} {warning}")


_FEWEST_BYTES = 4
"""Texts from which on the marks of Python's bytes are no chance."""


def warn_of_bytes(rows: Sequence[Row], columns: Iterable[str], source: str) -> None:
    """Warn once of a column whose texts all stand between the marks of Python's bytes."""
    for name in columns:
        key = (source, "bytes", name)
        cells = [cell for _, row in rows[:_UNREAD_ROWS] if isinstance(cell := row.get(name), str) and cell]
        if key in _UNREAD or len(cells) < _FEWEST_BYTES or not all(map(PYTHON_BYTES.fullmatch, cells)):
            continue
        _UNREAD.add(key)
        logger.warning(
            f"{source}: the texts of column {name!r} are written as bytes of Python, such as {excerpt(cells[0], 40)}, "
            "and are read with the marks. Decode them where the file is made: text.decode()"
        )


def _splits_warning(rows: Sequence[Row], name: str) -> str:
    """Return the warning of a column that names the split of each row; ``""`` for any other."""
    splits = _words_in(rows, name, "split", SPLIT_NAMES)
    if not splits:
        return ""
    return (
        f"names parts of the data, such as {splits[0]!r}, and is not read: the rows of all parts are read together. To "
        "train on one and test on another, write a file for each."
    )


def _answers_warning(rows: Sequence[Row], name: str) -> str:
    """Return the warning of a column by which an annotator did not accept some rows; ``""`` for any other."""
    refused = [answer for answer in _words_in(rows, name, "answer", ANSWERS) if answer != "accept"]
    if not refused:
        return ""
    return (
        f"says what an annotator answered, such as {refused[0]!r}, and is not read: rows of all answers are read, also "
        "with labels that were refused. Write a file of those with 'accept'."
    )


def _words_in(rows: Sequence[Row], name: str, usual_name: str, words: Set[str]) -> list[str]:
    """Return the different words of a column, in lower case; none if it holds others, or is a text of another name."""
    is_named = normalize_name(name) == usual_name or isinstance(rows[0][1], dict)
    if not (is_named and may_hold_texts(rows[0][1], name)):
        return []
    values = dict.fromkeys(str(cells.get(name) or "").strip().casefold() for _, cells in rows)
    values.pop("", None)  # rows that were not looked at
    return list(values) if words >= values.keys() else []


def _unread_warning(texts: Sequence[str], columns: Sequence[str], source: str, fix: str) -> str:
    """Return the warning that the text columns ``texts`` are not read, only ``columns``."""
    text_names = join_names([repr(name) for name in texts])
    read_names = join_names([repr(name) for name in columns])
    unread = f"columns {text_names} hold texts and are not read"
    if len(texts) == 1:
        unread = f"column {text_names} holds texts and is not read"
    read = f"read is {read_names}" if len(columns) == 1 else f"read are {read_names}"
    return f"{source}: {unread}; {read}. {fix or 'To read others: `columns`'}"


def _is_unread_text(rows: Sequence[Row], name: str) -> bool:
    """Return whether an unread column holds texts, judged by its type, and by its cells if they are in memory.

    Columns of Parquet are not read for this, because they may be large or damaged.
    """
    if is_identifier(name):
        return False
    if not isinstance(rows[0][1], dict):
        return may_hold_texts(rows[0][1], name)
    if nested_texts(rows, name):
        return True
    holds_texts = are_texts([cells.get(name) for _, cells in sniffed_rows(rows)])
    return holds_texts and (len(rows) < 4 or not has_repeated_values(rows, name))
