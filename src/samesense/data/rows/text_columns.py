"""Detects the columns of a table that hold texts from their cells, for tables with unfamiliar column names."""

from __future__ import annotations

import logging
import re
from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from samesense.data.rows.columnar import Cells, may_hold_texts, may_nest_texts
from samesense.data.rows.columns import (
    CLASS_NAMES,
    KNOWN_NAMES,
    LABEL_NAMES,
    MOST_NAMED,
    SENTENCE_LABEL_NAMES,
    SINGLE_NAMES,
    SUBSET_NAMES,
    TEXT_PAIRS,
    Row,
    find_anchor,
    find_name,
    find_pair,
    find_sides,
    is_distance,
    is_identifier,
    join_columns,
    join_names,
    listed,
    named_column,
    normalize_name,
    quote_columns,
    refuse_lists,
    spelled_names,
    split_columns,
)
from samesense.data.rows.labels import are_quantities, is_number, is_quantity, to_number, with_points
from samesense.data.rows.sources import names_in
from samesense.data.rows.text import current_options, split_suffix
from samesense.data.rows.yes_no import are_answers, translate_yes_no
from samesense.errors import DataError
from samesense.failures import excerpt

logger = logging.getLogger(__name__)

SNIFFED_ROWS = 1000
"""Rows of a table that are inspected to classify its columns."""

_SNIFFED_CELLS = 1_000_000  # in very wide tables fewer rows are inspected
_FEWEST_SNIFFED = 20

MOST_LOOKED_INTO = 200
"""Most columns whose cells are read only to find out which ones hold texts."""

_FEWEST_REPEATED = 4
"""Rows from which on values that repeat are no chance."""

_SPLITS = frozenset("train training dev development val valid validation test testing eval evaluation".split())
"""Names of parts of data, in lower case."""

_OBJECT_ROWS = 8
"""Rows that are inspected for objects."""

_DEEPEST = 5
"""Levels of an object that are inspected."""

_FEW_WORDS = 2
"""Most words of a text in an object that is taken for a setting, such as a name."""

MOST_WORDS = 4
"""Most words in a column name. A longer "name" is taken for a text, in a table without a header line; a name of
exactly this length too, if the cells below it are no longer."""

_ENDS = (".", "?", "!", "。", "？", "！")
_NO_TEXTS = {*LABEL_NAMES, *SUBSET_NAMES, "class"}
_TITLES = ("title", "headline", "heading", "subject")
_TITLED = ("text", "sentence", "body", "content", "article", "document", "description", "message", "review", "abstract")
"""Column names for titles, and for the texts that such a title belongs to."""

_USUAL_NAMES = frozenset((*KNOWN_NAMES, *SINGLE_NAMES, *_TITLES, *_TITLED, *_NO_TEXTS)).union(
    """
    sentences texts titles query queries answer answers response passage context document documents name
    names product comment comments note notes summary input output prompt completion instruction
    utterance intent topic category keyword keywords phrase source target original translation left right
    first second reply post tweet email mail paragraph section line word words term terms tag tags column
    col field value positive negative anchor pos neg claim evidence caption satz text frage fragen
    antwort titel beschreibung kommentar bezeichnung inhalt texte phrases titre réponse commentaire texto
    frase oración pregunta respuesta título descripción testo domanda risposta pergunta resposta zin
    vraag antwoord текст вопрос ответ название
    文本 句子 问题 標題 标题 内容 內容 回答 答案 テキスト 文 質問 텍스트 문장 질문
    """.split()
)
"""Words that are common in column names and that a short text rarely consists of."""

_IDENTIFIER = re.compile(r"[^\W\d_]+(_\w+|\d+)|[a-z]+([A-Z][a-z]*)+")
"""Identifiers as in programs: ``user_text``, ``text2``, ``userText``."""

_CODES = re.compile(
    r"https?://\S+|[a-z]{1,3}[_:-]?\d+|\d+[a-z]{1,3}\d+|"
    r"\d{1,4}[-./]\d{1,2}[-./]\d{1,4}([T ][\d:.+Z-]+)?|[0-9a-f-]{16,}",
    re.IGNORECASE,
)
"""URLs, dates and keys: strings that are not texts."""


def find_text_columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns that hold texts: not numbers, and not labels, identifiers or subsets by their names.

    In a columnar table with more than :data:`MOST_LOOKED_INTO` candidates, all candidates are returned unread.
    """
    sniffed = _sniff(rows)
    possible = [name for name in names_in(sniffed) if _may_hold_texts(sniffed, name)]
    if sniffed and isinstance(sniffed[0][1], Cells) and len(possible) > MOST_LOOKED_INTO:
        return possible  # reading them all would cost far more than reading the ones that are needed
    return [name for name in possible if _are_texts([cells.get(name) for _, cells in sniffed])]


def is_text_column(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column holds texts, by the rule of :func:`find_text_columns`; only this column is read."""
    sniffed = _sniff(rows)
    return bool(sniffed) and _may_hold_texts(sniffed, name) and _are_texts([cells.get(name) for _, cells in sniffed])


def _may_hold_texts(rows: Sequence[Row], name: str) -> bool:
    """Return whether the name and the type of a column allow texts."""
    return may_hold_texts(rows[0][1], name) and normalize_name(name) not in _NO_TEXTS and not is_identifier(name)


def _sniff(rows: Sequence[Row]) -> Sequence[Row]:
    """Return the first rows, which are enough to classify columns; fewer rows for very wide tables."""
    width = max((len(cells) for _, cells in rows[:1]), default=1)
    return rows[: max(_FEWEST_SNIFFED, min(SNIFFED_ROWS, _SNIFFED_CELLS // max(width, 1)))]


def _are_texts(values: Iterable[object]) -> bool:
    non_empty = [value for value in values if value not in (None, "")]
    texts = [value.strip() for value in non_empty if isinstance(value, str)]
    # Quantities, and answers such as yes and no, are labels; train and test are names of parts.
    if are_quantities(texts) or are_answers(texts) or _SPLITS.issuperset(map(str.casefold, texts)):
        return False
    is_code = [_is_code(str(text)) for text in with_points(texts)]
    # A column of texts has at least one word, and no more codes than texts.
    has_words = any(not code and to_number(text) is None for code, text in zip(is_code, texts, strict=True))
    return len(texts) == len(non_empty) and has_words and 2 * sum(is_code) <= len(texts)


def _is_code(text: str) -> bool:
    return is_number(text) or is_quantity(text) or _CODES.fullmatch(text) is not None


def text_column(rows: Sequence[Row], columns: str | None, source: str) -> str:
    """Return the column to read one text a row from: the column given in ``columns``, or the only one with texts.

    A column with a usual name of single texts, such as ``text``, is preferred. DataError if no column or several
    qualify, or the given one is missing; ConfigError if ``columns`` gives several.
    """
    names = names_in(rows)
    spelled = spelled_names(names)
    if columns is not None:
        requested = named_column(names, columns, source)
        refuse_lists(rows, [requested], source)
        return requested
    single_columns = [spelled[name] for name in SINGLE_NAMES if name in spelled]
    if single_columns and not find_pair(TEXT_PAIRS, spelled):
        candidates = single_columns
    else:
        candidates = find_text_columns(rows)
    if len(names) == 1 and any(isinstance(cells.get(names[0]), str) for _, cells in rows):
        candidates = names  # also numbers, and a name that is a label's
    if len(candidates) == 1:
        refuse_lists(rows, candidates, source)
        refuse_text(candidates, source, rows, "; or, of one text a line, end the name of the file in .txt")
        if not single_columns:
            refuse_objects(rows, candidates[0], source)
        return candidates[0]
    problem = "no column of texts could be found"
    if candidates:
        problem = f"several columns hold texts ({listed(candidates)})"
    example = "NAME"
    if candidates:
        example = quote_columns(_first_long_column(rows, candidates))
    raise DataError(f"{source}: {problem}. Its columns: {listed(names)}. Name the one to read: `columns` {example}")


def refuse_objects(rows: Sequence[Row], column: str, source: str) -> None:
    """Raise DataError if the only column of texts repeats a few, as a status does, and objects beside it hold texts."""
    if len(rows) < _FEWEST_REPEATED or not has_repeated_values(rows, column):
        return
    objects = object_columns(rows)
    if objects:
        raise DataError(
            f"{source}: the only column of texts, {column!r}, repeats a few of them, and "
            f"{describe_objects(rows, objects[0])} If {column!r} is what is meant: `columns` {quote_columns(column)}"
        )


def describe_objects(rows: Sequence[Row], name: str) -> str:
    """Return what a column of objects holds, and the fix, as the end of a message."""
    example = next(cell for _, cells in rows if (cell := cells.get(name)))
    return (
        f"column {name!r} holds objects, which are not read, such as {excerpt(example, 100)}. Write what is needed of "
        "them into columns; in pandas, json_normalize does so."
    )


def object_columns(rows: Sequence[Row]) -> list[str]:
    """Return the columns of objects, or of lists of objects, that hold texts of several words."""
    first_rows = rows[:_OBJECT_ROWS]
    names = names_in(first_rows)[:MOST_LOOKED_INTO]
    return [name for name in names if any(map(_holds_object, _nested_texts(first_rows, name)))]


def _nested_texts(rows: Sequence[Row], name: str) -> list[object]:
    """Return the cells of a column that are objects or lists, and hold texts of several words."""
    if not rows or not may_nest_texts(rows[0][1], name):
        return []
    cells = [cells.get(name) for _, cells in rows[:_OBJECT_ROWS]]
    return [cell for cell in cells if isinstance(cell, dict | list) and _holds_words(cell)]


def _holds_object(cell: object) -> bool:
    """Return whether a cell is an object, or a list of them."""
    return isinstance(cell, dict) or (isinstance(cell, list) and any(isinstance(value, dict) for value in cell))


def _holds_words(value: object, depth: int = 0) -> bool:
    """Return whether there is a text of several words in an object or a list."""
    if depth > _DEEPEST:
        return False
    if isinstance(value, dict):
        return any(_holds_words(cell, depth + 1) for cell in value.values())
    if isinstance(value, list):
        return any(_holds_words(cell, depth + 1) for cell in value)
    return isinstance(value, str) and _length(value) > _FEW_WORDS


def _first_long_column(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Return the first of these columns whose texts are at least half as long as those of the longest."""
    words = {name: _median_words(rows, name) for name in names[:MOST_LOOKED_INTO]}
    return next(name for name in words if 2 * words[name] >= max(words.values()))


def refuse_text(columns: Sequence[str], source: str, rows: Sequence[Row], otherwise: str = "") -> None:
    """Raise DataError if the name of one of these columns seems to be a text, as in a file without a header line.

    Also if no name is a usual one and all look like the cells below them, because the line may then be data or a
    header. Formats with a schema, such as Parquet, are not checked.
    """
    if split_suffix(source).suffix not in (".tsv", ".csv") or current_options().header is not None:
        return
    line = _FirstLine(rows)
    for name in columns:
        as_long_as_cells = len(name.split()) == MOST_WORDS >= _median_words(rows, name)
        if line.has_text(name) or (as_long_as_cells and not line.holds_names):
            raise DataError(
                f"{source}: the first line of a table names its columns, and {name!r} seems to be a text. Add a header "
                f"line{otherwise}. If it is the name of a column: `columns` {quote_columns(','.join(columns))}"
            )

    if columns and not line.holds_names and all(_looks_like_cells(name, rows) for name in columns):
        names = join_names([repr(name) for name in columns])
        look = "are no usual names of columns, and look"
        if len(columns) == 1:
            look = "is no usual name of columns, and looks"
        raise DataError(
            f"{source}: the first line may be a row of data: {names} {look} like the cells below. If the first line "
            f"has the names of the columns: `columns` {quote_columns(','.join(columns))}, or `header` yes; if it is "
            "data: `header` no."
        )


def _looks_like_cells(name: str, rows: Sequence[Row]) -> bool:
    """Return whether a name is unusual, about as long as the cells below it, and ends like them."""
    cells = [str(row[name]).strip() for _, row in rows[:SNIFFED_ROWS] if row.get(name) not in (None, "")]
    if not cells or _is_name(name, cells):
        return False
    lengths = sorted(map(_length, cells))
    # The shortest and longest tenth are ignored, so that outliers do not matter.
    tenth = len(lengths) // 10
    slack = 1.5  # lengths in characters vary more than those in words
    if " " in name.strip() or name.isascii():
        slack = 1
    if not lengths[tenth] / slack <= _length(name) <= lengths[-1 - tenth] * slack:
        return False
    ending_count = sum(cell[-1:] in _ENDS for cell in cells)
    # Above cells of which four in five end like sentences, a name without such an end is one.
    return name.strip()[-1:] in _ENDS or 5 * ending_count < 4 * len(cells)


def _is_name(name: str, cells: Sequence[str]) -> bool:
    """Return whether a name is a usual column name, or an identifier above cells that are not identifiers."""
    words = set(normalize_name(name).split("_"))
    if words & _USUAL_NAMES or normalize_name(name) in _USUAL_NAMES or is_identifier(name):
        return True
    return _IDENTIFIER.fullmatch(name.strip()) is not None and not any(map(_IDENTIFIER.fullmatch, cells))


def _length(text: str) -> int:
    """Return the number of words of a text, or of characters if it is non-ASCII and has no spaces."""
    if text.isascii() or " " in text.strip():
        return len(text.split())
    return len(text)


def _median_words(rows: Sequence[Row], name: str) -> int:
    """Return the median number of words in the cells of a column."""
    lengths = sorted(len(str(cells.get(name) or "").split()) for _, cells in rows[:SNIFFED_ROWS])
    if lengths:
        return lengths[len(lengths) // 2]
    return MOST_WORDS + 1


class _FirstLine:
    """The first line of a table, which holds the column names or, without a header, the first row of data."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self._rows = _sniff(rows)

    @cached_property
    def holds_names(self) -> bool:
        """Whether the line is certainly a header: it has a word above a column of nothing but numbers or dates."""
        columns: dict[str, list[str]] = {}
        for _, cells in self._rows:
            for name, cell in cells.items():
                if cell not in (None, ""):
                    columns.setdefault(name, []).append(str(cell).strip())
        return any(name.strip() and not _is_code(name) and all(map(_is_code, cells)) for name, cells in columns.items())

    @cached_property
    def _unusual(self) -> set[str]:
        """The names that could also be texts, numbers or dates."""
        return {
            name
            for name in self._names
            if _is_code(name) or _ends_like_sentence(name) or len(name.split()) > MOST_WORDS
        }

    @cached_property
    def _names(self) -> list[str]:
        return names_in(self._rows)

    def has_text(self, name: str) -> bool:
        """Return whether the name of a column seems to be a text, by its length or by the way it ends.

        A name may end like a text too: ``What is your question?`` beside other names is a name, unless most cells of
        its column end with the same character.
        """
        words = len(name.split())
        if (not _ends_like_sentence(name) and words <= MOST_WORDS) or self.holds_names:
            return False
        # If every name is unusual, the line is likely data.
        if words > MOST_WORDS or self._unusual.issuperset(self._names):
            return True
        end = name.strip()[-1:]
        same_ending = [str(cells.get(name) or "").strip()[-1:] == end for _, cells in self._rows]
        return 2 * sum(same_ending) > len(same_ending)

    def is_data(self, texts: Sequence[str]) -> bool:
        """Return whether the line may be a row of data; ``texts`` are the table's text columns."""
        if any(is_number(name) or self.has_text(name) for name in self._names[:MOST_LOOKED_INTO]):
            return True
        inspected = texts[:MOST_LOOKED_INTO]
        return (
            bool(inspected) and not self.holds_names and all(_looks_like_cells(name, self._rows) for name in inspected)
        )


def _ends_like_sentence(name: str) -> bool:
    """Return whether a name ends like a sentence."""
    return name.strip()[-1:] in _ENDS


def example_columns(rows: Sequence[Row]) -> str:
    """Return a guess at ``columns`` for an error: first,second,label, or two texts if no column may be a label."""
    names = names_in(rows[:SNIFFED_ROWS])
    texts = _different_texts(rows)
    if rows and not isinstance(rows[0][1], Cells) and _FirstLine(rows).is_data(texts):
        return ""
    spelled = spelled_names(names)
    known_pair = find_pair(TEXT_PAIRS, spelled)
    columns = texts[:2]
    if known_pair:
        columns = [spelled[name] for name in known_pair]
    if len(columns) != 2:
        return ""
    label = _label_column(rows, columns, texts)
    if label is not None:
        columns.append(label)
    return join_columns(columns)


def example_of_three_columns(rows: Sequence[Row]) -> str:
    """Return the three text columns of a table, the third of which may be a negative; ``""`` for another number."""
    texts = _different_texts(rows)
    if len(texts) == 3 and len(split_columns(example_columns(rows))) == 2:
        return join_columns(texts)
    return ""


def _different_texts(rows: Sequence[Row]) -> list[str]:
    """Return the text columns without those of few values, such as classes; all of them if fewer than two remain."""
    texts = find_text_columns(rows)
    # In so wide a table, to read all columns would take long.
    if len(texts) > MOST_LOOKED_INTO:
        return texts
    distinct = [name for name in texts if len(rows) < 4 or not has_repeated_values(rows, name)]
    if len(distinct) > 1:
        return distinct
    return texts


def has_repeated_values(rows: Sequence[Row], column: str) -> bool:
    """Return whether a column's values occur twice or more on average, as classes do and texts do not."""
    values = [str(cells[column]) for _, cells in _sniff(rows) if cells.get(column) not in (None, "")]
    # Texts may repeat too, but not each of them.
    return 2 * len(set(values)) <= len(values)


def guessed_pairs(rows: Sequence[Row]) -> str | None:
    """Guess ``columns`` of labelled pairs from the cells: two text columns and a label column; ``None`` if unknown.

    Either the label column has a usual name, or the text columns have and the label is the only other column.
    """
    names = names_in(rows)
    spelled = spelled_names(names)
    triplet = triplet_columns(rows)
    if triplet is not None and find_name(LABEL_NAMES, spelled) is None:
        return join_columns(triplet)
    texts = find_text_columns(rows)
    if len(texts) != 2 or {"premise", "hypothesis"} <= spelled.keys() or find_titled_text(rows):
        return None
    label = find_name(LABEL_NAMES, spelled)
    if label is None and find_pair(TEXT_PAIRS, spelled) and len(columns_besides(names, texts)) == 1:
        label = _label_column(rows, texts, texts)
    if label is None:
        return None
    return join_columns([*texts, label])


def triplet_columns(rows: Sequence[Row]) -> list[str] | None:
    """Return the anchor, positive and negative columns by their names, as ``text``, ``text_pos`` and ``text_neg``.

    ``None`` unless there is one of each and all of them hold texts.
    """
    names = names_in(rows[:SNIFFED_ROWS])
    sides = find_sides(names)
    positives = [name for name, side in sides.items() if side == "positive"]
    negatives = [name for name, side in sides.items() if side == "negative"]
    anchor = find_anchor(names, [*positives, *negatives])
    if len(positives) != 1 or len(negatives) != 1 or anchor is None:
        return None
    columns = [anchor, positives[0], negatives[0]]
    if all(is_text_column(rows, name) for name in columns):
        return columns
    return None


class TitledText(NamedTuple):
    """The columns of texts with a title and a class each."""

    title: str
    text: str
    label: str


def find_titled_text(rows: Sequence[Row]) -> TitledText | None:
    """Return the columns with title, text and class of a table of, say, news or mails; ``None`` for other tables.

    A title and its text are not a pair to compare, unless the labels are decimals, as similarities are.
    """
    texts = find_text_columns(rows)
    spelled = spelled_names(texts)
    title = find_name(_TITLES, spelled)
    text = find_name(_TITLED, spelled)
    label = find_name(SENTENCE_LABEL_NAMES, spelled_names(names_in(rows[:SNIFFED_ROWS])))
    if len(texts) != 2 or title is None or text is None or label is None:
        return None
    # Decimal labels are similarities, so that title and text are a pair after all.
    numbers = (to_number(cells.get(label)) for _, cells in rows[:SNIFFED_ROWS])
    if any(number is not None and not number.is_integer() for number in numbers):
        return None
    return TitledText(title, text, label)


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
) -> None:
    """Log which columns are not read: a warning for columns with texts (not classes), one info line for the others.

    Args:
        rows: the first rows of the source.
        columns: the columns that are read.
        source: name of the source in messages.
        fix: how to read other columns, for the warning.
        besides: columns that another message already covers.
        metadata: whether to name columns without texts too; ``False`` where the output may include them.
    """
    first_rows = rows[:_UNREAD_ROWS]
    read = {*columns, *besides}
    unread = [name for name in names_in(first_rows) if name not in read and name.strip()]
    key = (source, *columns, "", *unread)
    if not unread or key in _UNREAD:
        return
    _UNREAD.add(key)
    reportable = [name for name in unread if normalize_name(name) not in _NO_TEXTS]
    texts = [name for name in reportable if _is_unread_text(first_rows, name)]
    text_set = set(texts)
    without_texts = [name for name in reportable if name not in text_set]
    if texts:
        logger.warning(_unread_warning(texts, columns, source, fix))
    warn_of_splits(first_rows, [*read, *texts], source)
    if without_texts and metadata:
        logger.info(f"{source}: not read: {listed(without_texts, MOST_NAMED)}")


def warn_of_splits(rows: Sequence[Row], columns: Collection[str], source: str) -> None:
    """Warn once of a column besides those that are read which names the split of each row, such as train and test."""
    first_rows = rows[:_UNREAD_ROWS]
    for name in names_in(first_rows):
        key = (source, "split", name)
        if name in columns or key in _UNREAD:
            continue
        splits = _splits_in(first_rows, name)
        if splits:
            _UNREAD.add(key)
            logger.warning(
                f"{source}: column {name!r} names parts of the data, such as {splits[0]!r}, and is not read: the rows "
                "of all parts are read together. To train on one and test on another, write a file for each."
            )


_BYTES = re.compile(r"b(['\"]).*\1", re.DOTALL)
"""A text as Python writes bytes, ``b'A text.'``."""


def warn_of_bytes(rows: Sequence[Row], columns: Iterable[str], source: str) -> None:
    """Warn once of a column whose texts all stand between the marks of Python's bytes."""
    for name in columns:
        key = (source, "bytes", name)
        cells = [cell for _, row in rows[:_UNREAD_ROWS] if isinstance(cell := row.get(name), str) and cell]
        if key in _UNREAD or len(cells) < _FEWEST_REPEATED or not all(map(_BYTES.fullmatch, cells)):
            continue
        _UNREAD.add(key)
        logger.warning(
            f"{source}: the texts of column {name!r} are written as bytes of Python, such as {excerpt(cells[0], 40)}, "
            "and are read with the marks. Decode them where the file is made: text.decode()"
        )


def _splits_in(rows: Sequence[Row], name: str) -> list[str]:
    """Return the parts of the data that a column names, such as train and test; none if it holds something else."""
    if not may_hold_texts(rows[0][1], name) or (normalize_name(name) != "split" and not isinstance(rows[0][1], dict)):
        return []
    values = dict.fromkeys(str(cells.get(name)).strip().casefold() for _, cells in rows)
    return list(values) if _SPLITS.issuperset(values) else []


def _unread_warning(texts: Sequence[str], columns: Sequence[str], source: str, fix: str) -> str:
    """Return the warning that the text columns ``texts`` are not read, only ``columns``."""
    text_names = join_names([repr(name) for name in texts])
    read_names = join_names([repr(name) for name in columns])
    unread = f"columns {text_names} hold texts and are not read"
    if len(texts) == 1:
        unread = f"column {text_names} holds texts and is not read"
    read = f"read are {read_names}"
    if len(columns) == 1:
        read = f"read is {read_names}"
    return f"{source}: {unread}; {read}. {fix or 'To read others: `columns`'}"


def _is_unread_text(rows: Sequence[Row], name: str) -> bool:
    """Return whether an unread column holds texts, judged by its type, and by its cells if they are in memory.

    Columns of Parquet are not read for this, because they may be large or damaged.
    """
    if is_identifier(name):
        return False
    if not isinstance(rows[0][1], dict):
        return may_hold_texts(rows[0][1], name)
    if _nested_texts(rows, name):
        return True
    are_texts = _are_texts([cells.get(name) for _, cells in _sniff(rows)])
    return are_texts and (len(rows) < 4 or not has_repeated_values(rows, name))


def columns_besides(names: Sequence[str], texts: Sequence[str]) -> list[str]:
    """Return the columns other than the text columns, without subsets and identifiers."""
    text_set = set(texts)
    return [
        name
        for name in names
        if name not in text_set and normalize_name(name) not in SUBSET_NAMES and not is_identifier(name)
    ]


def _label_column(rows: Sequence[Row], pair: Sequence[str], texts: Sequence[str]) -> str | None:
    """Return the column that may be the label of a pair: by its name, or the most likely one that varies."""
    candidates = [name for name in columns_besides(names_in(rows[:SNIFFED_ROWS]), pair) if not is_distance(name)]
    label = find_name((*CLASS_NAMES, *LABEL_NAMES), spelled_names(candidates))
    if label is not None:
        return label
    text_set = set(texts)
    without_texts = [name for name in candidates if name not in text_set][:MOST_LOOKED_INTO]
    varied = [name for name in without_texts if _varies(rows, name)]
    return min(varied, key=lambda name: _doubt_of_labels(rows, name), default=None)


def _doubt_of_labels(rows: Sequence[Row], name: str) -> tuple[bool, bool, bool]:
    """Return a sort key, lower for likelier label columns: numeric, then named by a question, then with two values."""
    values = [str(cells[name]) for _, cells in rows[:SNIFFED_ROWS] if cells.get(name) not in (None, "")]
    answers = values if not are_answers(values) else translate_yes_no(values, name)
    numbers = [to_number(value) for value in with_points(answers)]
    return any(number is None for number in numbers), name.strip()[-1:] not in _ENDS, len(set(values)) > 2


def _varies(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column has values that are not just distinct integers, as row numbers are."""
    values = [cells.get(name) for _, cells in rows[:SNIFFED_ROWS] if cells.get(name) not in (None, "")]
    numbers = [to_number(value) for value in values]
    # A word that is the same in all rows is no label, as of a status; lists and objects are none either.
    is_constant = len(values) > 3 and len(set(map(str, values))) == 1
    if any(isinstance(value, list | dict) for value in values) or (is_constant and numbers[0] is None):
        return False
    # Words that are all different are keys rather than labels.
    if len(values) > 3 and not any(number is not None for number in numbers) and len(set(values)) == len(values):
        return False
    # Distinct integers are row numbers rather than labels.
    are_integers = all(number is not None and number.is_integer() for number in numbers)
    return bool(values) and not (are_integers and len(numbers) > 3 and len(set(numbers)) == len(numbers))
