"""Rows of data in memory: data frames, Arrow tables, datasets, and plain Python rows."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import chain, islice
from numbers import Number
from types import SimpleNamespace
from typing import Any

from samesense.data.conventions.class_names import NLI_VALUES, word_of
from samesense.data.conventions.column_names import is_index
from samesense.data.conventions.numbers import are_quantities, to_number
from samesense.data.conventions.yes_no import translate_yes_no
from samesense.data.rows.columnar import BATCH, UNLABELLED, Convert, arrow_rows, class_names, to_names
from samesense.data.rows.delimited import refuse_repeated
from samesense.errors import DataError
from samesense.failures import abridged, excerpt, first_line

SENTENCE = "sentence"
"""Name of the column of rows that are texts."""

_PAIR = ("sentence1", "sentence2")

_CLASSIFIED = ("text", "label")

_SCORED = (*_PAIR, "score")

_NLI = ("premise", "hypothesis", "label")

_TRIPLET = ("anchor", "positive", "negative")

_FORM = 1000
"""Rows without column names that are inspected to find out what their third cells are."""


_IN_MEMORY = " in memory"


def name_in_memory(source: Any) -> str:
    """Return the name of data in memory in messages."""
    return f"{type(source).__name__}{_IN_MEMORY}"


def is_name_in_memory(name: str) -> bool:
    """Return whether a name is one of :func:`name_in_memory`, which no one chose and several data may have."""
    return name.endswith(_IN_MEMORY)


class Rows(list[Any]):
    """Plain rows that form one source, whereas a plain list may also be several sources."""


def as_rows(source: Any) -> Any:
    """Return a set, or a column of texts such as a series or an array, as plain rows; other sources unchanged.

    A dictionary of columns becomes a list of dictionaries, and a dictionary of a single split becomes that split.
    """
    _refuse_lazy_frame(source)
    # An array of NumPy whose rows have named cells.
    fields_of_rows = getattr(getattr(source, "dtype", None), "names", None)
    if fields_of_rows:
        source = {name: source[name] for name in fields_of_rows}
    # Sets have no order; sorting makes the rows reproducible.
    if isinstance(source, set | frozenset):
        return Rows(sorted(source, key=str))
    if isinstance(source, Mapping) and source:
        values = list(source.values())
        columns = [cells_of_column(value) for value in values]
        lists = [column for column in columns if column is not None]
        # Not all values are columns; a dictionary with one split stands for that split.
        if len(lists) < len(values):
            _refuse_single_values(source)
            if len(values) == 1:
                return values[0]
            return source
        _refuse_unequal(dict(zip(map(str, source), map(len, lists), strict=True)))
        return Rows(dict(zip(source, row, strict=True)) for row in zip(*lists, strict=True))
    column = None if isinstance(source, list | tuple | Rows) else cells_of_column(source)
    if column is None:
        return source
    return Rows(column)


def cells_of_column(column: Any) -> list[Any] | None:
    """Return the cells of a column: a list, a tuple, an array or a series of NumPy, pandas, polars, Arrow or torch.

    ``None`` if it is not a column, such as a text or a data frame.
    """
    if isinstance(column, list | tuple):
        return list(column)
    if isinstance(column, Sequence) and not isinstance(column, str | bytes):  # a column of ``datasets``
        return list(column)
    # Data frames and tables are not columns.
    if any(hasattr(column, name) for name in ("columns", "column_names", "features")):
        return None
    # NumPy would give its times as numbers.
    kind = getattr(getattr(column, "dtype", None), "kind", "")
    if kind in "mM" and hasattr(column, "flat"):
        # A year alone would be a number.
        if str(column.dtype) == "datetime64[Y]":
            column = column.astype("datetime64[D]")
        column = column.astype(str)
    listed = next((getattr(column, name) for name in ("tolist", "to_list", "to_pylist") if hasattr(column, name)), None)
    cells = None if listed is None else listed()
    if isinstance(cells, list):
        return cells
    return None


def _refuse_single_values(columns: Mapping[Any, Any]) -> None:
    """Raise DataError if a column of a dictionary is one cell: a text would be taken for a list of its letters."""
    for name, value in columns.items():
        if value is None or isinstance(value, str | bytes | Number):
            raise DataError(
                f"dict in memory: the columns of a dictionary are lists; {str(name)!r} is one cell, "
                f"{str(value)[:60]!r}. Put each cell into a list, or the dictionary: [{{...}}] is a list of rows."
            )


def _refuse_unequal(lengths: Mapping[str, int]) -> None:
    """Raise DataError if the columns of a dictionary are of different lengths."""
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name!r} {length}" for name, length in islice(lengths.items(), 8))
        raise DataError(
            f"dict in memory: several splits or columns of different lengths were given where one table is needed: "
            f"{listed}. Give one split, or columns of one length."
        )


def _refuse_lazy_frame(source: Any) -> None:
    """Raise DataError for a frame of polars that is not computed: each look at its columns would plan the query."""
    if type(source).__name__ == "LazyFrame":
        raise DataError(f"{name_in_memory(source)}: a lazy frame has no rows yet. Collect it first: frame.collect()")


def refuse_open_file(source: Any) -> None:
    """Raise DataError for an open file: its lines would be taken for texts, whatever it holds."""
    if hasattr(source, "readline"):
        raise DataError(
            f"{name_in_memory(source)}: an open file does not say what its lines are. Give its path; or its rows, as "
            "in list(csv.DictReader(file))"
        )


def memory_rows(source: Any) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the rows of an object, numbered from 1, with cells by column name.

    Plain rows without column names are named by their form: text, text, number are a scored pair; three texts are an
    anchor, positive and negative, unless the third is a class label; two texts are a pair; one text is a sentence.
    DataError if the object's type is not supported, or its rows differ in form.
    """
    # A datasets.Dataset, perhaps a streamed one.
    if hasattr(source, "features") and hasattr(source, "with_format"):
        return dataset_rows(source, name_in_memory(source))
    source = as_rows(source)
    if isinstance(source, Mapping):
        raise DataError(
            f"{name_in_memory(source)}: several splits or columns were given where one table is needed; the keys are "
            f"{', '.join(map(str, islice(source, 5)))}. Give one split, or a data frame."
        )
    # Of an Arrow table the columns are the values; its names are checked below.
    if hasattr(source, "columns") and not hasattr(source, "column_names"):
        refuse_repeated(name_in_memory(source), list(map(str, source.columns)))
    source = _with_spans_as_texts(source)
    table = _as_table(source)
    if table is None and is_frame(source):
        return _rows_of_frame(source)
    if table is not None:
        # The index of a pandas frame is not data.
        table = table.drop_columns([name for name in table.column_names if is_index(name)])
        refuse_repeated(name_in_memory(source), table.column_names)
        if _without_names(table.column_names):
            records = (record for batch in table.to_batches(BATCH) for record in batch.to_pylist())
            return _plain_rows(tuple(record.values()) for record in records)
        batches = (table.slice(start, BATCH) for start in range(0, table.num_rows, BATCH))
        return arrow_rows(batches, name_in_memory(source), class_names(table.schema.metadata))
    refuse_open_file(source)
    # A single value of NumPy, an array without dimensions, has the methods of an iterable.
    is_single = getattr(source, "shape", None) == ()
    if isinstance(source, Iterable) and not isinstance(source, bytes) and not is_single:
        return _plain_rows(_without_default_labels(source))
    raise DataError(
        f"Data must be a path, a hub name, a data frame, a datasets.Dataset, or a list of rows; received "
        f"{type(source).__name__}."
    )


def _without_default_labels(rows: Iterable[Any]) -> Iterable[Any]:
    """Return pairs of ``InputExample`` without labels if all are 0, which it takes where no label is given."""
    if isinstance(rows, list) and all(is_example(row) and len(row.texts) == 2 and row.label == 0 for row in rows):
        return [tuple(row.texts) for row in rows]
    return rows


def dataset_rows(dataset: Any, source: str) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield the rows of a ``datasets.Dataset`` with class labels as names, never as integers.

    ``source`` is its name in messages. DataError if it is damaged.
    """
    names = {column: feature.names for column, feature in dataset.features.items() if hasattr(feature, "int2str")}
    converted = to_names(names)
    # A streamed dataset has no Arrow table behind it.
    if hasattr(dataset, "data"):
        return arrow_rows(dataset.with_format("arrow").iter(BATCH), source, converted)
    return _streamed_rows(dataset, converted)


def _streamed_rows(dataset: Any, converted: Mapping[str, Convert]) -> Iterator[tuple[int, dict[str, object]]]:
    for number, record in enumerate(dataset.with_format(None), 1):
        cells = {key: value for key, value in record.items() if not is_index(key)}
        yield number, {key: converted[key](value) if key in converted else value for key, value in cells.items()}


_SPANS = ("period[", "interval[")
"""Types of pandas for spans of time or numbers; Arrow would store a period as a number."""


def _with_spans_as_texts(source: Any) -> Any:
    """Return a pandas frame with its periods and intervals as texts; other sources unchanged."""
    if not hasattr(source, "dtypes") or not hasattr(source, "assign") or not hasattr(source.dtypes, "items"):
        return source
    spans = [name for name, kind in source.dtypes.items() if str(kind).startswith(_SPANS)]
    if not spans:
        return source
    copied = source.copy(deep=False)
    for name in spans:
        # astype would write a missing value as a text.
        copied[name] = source[name].map(_span_text, na_action="ignore").astype(object)
    return copied


def _span_text(span: Any) -> str:
    """Return a period or an interval as a text; a year, which would be a number, by its first day."""
    text = str(span)
    if text.isdigit():
        return str(span.start_time.date())
    return text


def is_frame(source: Any) -> bool:
    """Return whether a source is a data frame of pandas."""
    return hasattr(source, "iloc") and hasattr(source, "reset_index") and hasattr(source, "columns")


def _rows_of_frame(frame: Any) -> Iterator[tuple[int, dict[str, object]]]:
    """Yield the rows of a pandas frame, whose cells may be of any type."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    names = list(map(str, frame.columns))
    columns = [frame.iloc[:, position] for position in range(len(names))]
    rows = ([None if is_missing(cell) else cell for cell in cells] for cells in zip(*columns, strict=True))
    if _without_names(names):
        return _plain_rows(map(tuple, rows))
    return _plain_rows(dict(zip(names, row, strict=True)) for row in rows)


def _as_table(source: Any) -> Any:
    """Return an Arrow table of an object with an Arrow or data frame interchange protocol; ``None`` for others."""
    if not any(hasattr(source, name) for name in ("__arrow_c_stream__", "__dataframe__", "to_arrow", "to_batches")):
        return None
    # Loaded for frames and tables alone; rows of Python need no Arrow.
    import pyarrow as pa

    try:
        if hasattr(source, "__arrow_c_stream__"):
            table = pa.table(source)
            _refuse_numbers_as_dates(source, table)
            return table
        if hasattr(source, "to_arrow"):
            return source.to_arrow()
        from pyarrow.interchange import from_dataframe

        return from_dataframe(source)
    except (pa.ArrowException, TypeError, ValueError, RuntimeError, OverflowError) as error:
        # A column that no one asks for may hold cells of several types; those that are read are checked one by one.
        if is_frame(source):
            return None
        raise DataError(
            f"{name_in_memory(source)}: it cannot be read as a table ({first_line(error)}). Columns must hold one type "
            "each: texts as str, scores as numbers."
        ) from error


def _refuse_numbers_as_dates(frame: Any, table: Any) -> None:
    """Raise DataError for a column of dates and numbers, as spreadsheets make it: Arrow makes dates of the numbers."""
    import pyarrow as pa

    if not hasattr(frame, "iloc"):
        return
    # The index of a frame comes after its columns.
    for position, field in enumerate(table.schema):
        of_objects = position < frame.shape[1] and str(frame.dtypes.iloc[position]) == "object"
        if not of_objects or not pa.types.is_temporal(field.type):
            continue
        cells = frame.iloc[:, position]
        row = next((row for row, cell in enumerate(cells, 1) if isinstance(cell, Number) and cell == cell), None)
        if row is not None:
            raise DataError(
                f"{name_in_memory(frame)}, row {row}: column {field.name!r} holds dates and numbers. Spreadsheets make "
                "dates of numbers such as 5.4: correct these cells, so that the column has one type."
            )


def _without_names(columns: Sequence[str]) -> bool:
    """Return whether columns are named 0, 1, 2, ..., as in a data frame made of tuples."""
    return list(columns) == [str(index) for index in range(len(columns))]


def _plain_rows(rows: Iterable[Any]) -> Iterator[tuple[int, dict[str, object]]]:
    remaining = iter(rows)
    first = [_cells_of(row) for row in islice(remaining, _FORM)]
    _refuse_frames(first[:1])
    # A text of three characters is a sequence of length 3 as well.
    threes = [row for row in first if isinstance(row, Sequence) and not isinstance(row, str) and len(row) == 3]
    # The same names for all rows, decided by most of the first ones.
    names = _names_of(threes)
    twos = [row for row in first if isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) == 2]
    pair = _PAIR
    if twos and all(isinstance(text, str) and _is_integer(label) for text, label in twos):
        pair = _CLASSIFIED
    for number, row in enumerate(chain(first, map(_cells_of, remaining)), 1):
        if isinstance(row, Mapping):
            _check_names(number, row)
            yield number, dict(row)
        elif isinstance(row, str | bytes):
            yield number, {SENTENCE: row}
        elif is_missing(row):
            yield number, {SENTENCE: None}
        elif isinstance(row, Sequence) and len(row) == 1:
            yield number, {SENTENCE: row[0]}
        elif isinstance(row, Sequence) and len(row) in (2, 3):
            yield number, dict(zip(pair if len(row) == 2 else names, row, strict=True))
        else:
            raise DataError(
                f"Row {number} in memory: a row is a dict, a text, or a tuple of one to three cells; received "
                f"{str(row)[:60]!r}. Write pairs as (text, text, score), and more columns as a dict."
            )


def _is_integer(cell: Any) -> bool:
    """Return whether a cell is an integer or a truth value, of Python or NumPy."""
    return isinstance(cell.item() if hasattr(cell, "item") else cell, int)


def _refuse_frames(rows: Iterable[Any]) -> None:
    """Raise DataError for rows with a part of a data frame as a cell."""
    for row in rows:
        if isinstance(row, tuple) and any(hasattr(cell, "iloc") for cell in row):
            raise DataError(
                "Row 1 in memory: a cell is a text, a number or a list, and one is a part of a data frame, as "
                "iterrows() and groupby() give them. Give the frame itself."
            )


def _check_names(number: int, row: Mapping[Any, object]) -> None:
    """Raise DataError if the name of a column is no text, as of fields that csv.DictReader has no name for."""
    for name, cell in row.items():
        if not isinstance(name, str):
            fix = "Name the columns."
            if name is None:
                fix = "csv.DictReader gives it fields beyond the header: a text with a comma stands in double quotes."
            raise DataError(
                f"Row {number} in memory: the names of columns are texts; received {name!r} for {excerpt(cell, 60)}. "
                f"{fix}"
            )


def is_missing(cell: object) -> bool:
    """Return whether a cell is ``None``, NaN, or the missing value of pandas."""
    if isinstance(cell, float):
        return math.isnan(cell)
    return cell is None or type(cell).__name__ in ("NAType", "NaTType")


def is_example(row: Any) -> bool:
    """Return whether a row is an ``InputExample`` of sentence-transformers."""
    return type(row).__name__ == "InputExample"


def fields_of(row: Any) -> dict[str, object] | None:
    """Return the fields of an instance of a dataclass, a model of pydantic, or a namespace; ``None`` for others."""
    if isinstance(row, SimpleNamespace):
        return vars(row)
    kind = type(row)
    # Sources such as PairData are dataclasses too, and have a length.
    if hasattr(kind, "__len__"):
        return None
    if is_dataclass(kind):
        return {field.name: getattr(row, field.name) for field in fields(row)}
    if hasattr(kind, "model_fields"):
        return {name: getattr(row, name) for name in kind.model_fields}
    return None


def _cells_of(row: Any) -> Any:
    """Return the cells of an array, a named tuple, an object with fields or an ``InputExample``.

    Other rows are returned unchanged.
    """
    if isinstance(row, str | bytes | dict | list):
        return row
    if is_example(row):
        if len(row.texts) == 2:
            return (*row.texts, row.label)
        return tuple(row.texts)
    # The order of named cells says nothing: a negative may stand before the positive.
    if isinstance(row, tuple) and hasattr(row, "_asdict"):
        return row._asdict()
    if hasattr(row, "tolist"):
        return row.tolist()
    return fields_of(row) or row


def _names_of(rows: Sequence[Sequence[Any]]) -> tuple[str, ...]:
    """Return the column names of rows of three cells: most third cells are numbers, classes or texts."""
    thirds = [row[2] for row in rows]
    forms = [_form_of(third) for third in translate_yes_no(thirds, "The third cell of rows in memory")]
    names = max((_SCORED, _NLI, _TRIPLET), key=forms.count)
    if names == _TRIPLET:
        _refuse_words_as_negatives(thirds, {str(row[0]) for row in rows})
    return names


_MOST_LABELS = 10
_LONGEST_LABEL = 20
_ANCHORS_OF_A_LABEL = 3


def _refuse_words_as_negatives(cells: Sequence[Any], anchors: Collection[str]) -> None:
    """Raise DataError for few single words that many anchors share: labels of no known meaning, or negatives."""
    words = list(dict.fromkeys(map(str, cells)))
    if len(words) > _MOST_LABELS or len(anchors) < _ANCHORS_OF_A_LABEL * len(words):
        return
    if all(len(word) <= _LONGEST_LABEL and " " not in word.strip() for word in words):
        raise DataError(
            f"The third cells of rows in memory are few words, {abridged(list(map(repr, words)), 5)}: labels whose "
            "meaning is not known, or negatives. Replace labels by numbers: the higher, the closer the two texts. Name "
            'negatives in dicts: {"anchor": ..., "positive": ..., "negative": ...}.'
        )


def _form_of(third: Any) -> tuple[str, ...]:
    if not isinstance(third, str) or _is_number(third) or to_number(third) is not None:
        return _SCORED
    if are_quantities([third]):  # the label parser reads them, or refuses their unit
        return _SCORED
    if third.strip() == UNLABELLED or word_of(third) in NLI_VALUES:
        return _NLI
    return _TRIPLET


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
