"""Guesses from cells: which columns of a table with unfamiliar names are pairs, triplets, titles and labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from samesense.data.columns.header_line import (
    SENTENCE_ENDS,
    TEXTS_WITH_TITLE,
    TITLES,
    FirstLine,
    median_words,
    refuse_text,
)
from samesense.data.columns.text_columns import (
    MOST_LOOKED_INTO,
    SNIFFED_ROWS,
    describe_lists,
    describe_objects,
    find_text_columns,
    has_repeated_values,
    is_text_column,
    refuse_lists,
    refuse_objects,
    sniffed_rows,
    text_length,
)
from samesense.data.conventions.class_names import NLI_VALUES, WORDS, word_of
from samesense.data.conventions.column_names import (
    CLASS_NAMES,
    JUDGEMENT_NAMES,
    LABEL_NAMES,
    SENTENCE_LABEL_NAMES,
    SINGLE_NAMES,
    SUBSET_NAMES,
    TEXT_PAIRS,
    find_anchor,
    find_name,
    find_pair,
    find_sides,
    is_distance,
    is_identifier,
    normalize_name,
    spelled_names,
)
from samesense.data.conventions.named_columns import join_columns, listed, named_column, quote_columns, split_columns
from samesense.data.conventions.numbers import to_number, with_points
from samesense.data.conventions.yes_no import are_answers, translate_yes_no
from samesense.data.rows.columnar import Cells
from samesense.data.rows.load import names_in
from samesense.errors import DataError
from samesense.types import Row


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
    if not candidates and (cells := describe_objects(rows) or describe_lists(rows)):
        raise DataError(f"{source}: {problem}. Its columns: {listed(names)}. By the first rows, {cells}")
    example = "NAME"
    if candidates:
        problem = f"several columns hold texts ({listed(candidates)})"
        first = _first_long_column(rows, candidates)
        # Of a row of data, none of the texts is the name of a column.
        refuse_text([first], source, rows)
        example = quote_columns(first)
    raise DataError(f"{source}: {problem}. Its columns: {listed(names)}. Name the one to read: `columns` {example}")


def _first_long_column(rows: Sequence[Row], names: Sequence[str]) -> str:
    """Return the first of these columns whose texts are at least half as long as those of the longest."""
    words = {name: median_words(rows, name) for name in names[:MOST_LOOKED_INTO]}
    return next(name for name in words if 2 * words[name] >= max(words.values()))


def example_columns(rows: Sequence[Row]) -> str:
    """Return a guess at ``columns`` for an error: first,second,label, or two texts if no column may be a label."""
    names = names_in(rows[:SNIFFED_ROWS])
    texts = _different_texts(rows)
    if rows and not isinstance(rows[0][1], Cells) and FirstLine(rows).is_data(texts):
        return ""
    spelled = spelled_names(names)
    known_pair = find_pair(TEXT_PAIRS, spelled)
    columns = texts[:2]
    if known_pair:
        columns = [spelled[name] for name in known_pair]
    if len(columns) != 2:
        return ""
    # Judgements in lists are no labels yet, and the error about them says how they become some.
    label = _label_column(rows, columns, texts)
    # Several scores a row, as of a teacher, do not become labels.
    if label is not None and isinstance(rows[0][1].get(label), list):
        label = None
    label = label or find_name(JUDGEMENT_NAMES, spelled)
    if label is not None and label not in columns:
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
    if label is None or find_described_text(rows):
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
    title = find_name(TITLES, spelled)
    text = find_name(TEXTS_WITH_TITLE, spelled)
    label = find_name(SENTENCE_LABEL_NAMES, spelled_names(names_in(rows[:SNIFFED_ROWS])))
    if len(texts) != 2 or title is None or text is None or label is None:
        return None
    # Decimal labels are similarities, so that title and text are a pair after all.
    numbers = (to_number(cells.get(label)) for _, cells in rows[:SNIFFED_ROWS])
    if any(number is not None and not number.is_integer() for number in numbers):
        return None
    return TitledText(title, text, label)


class DescribedText(NamedTuple):
    """The columns of texts with a class each, and of few words about them, such as the name of the class."""

    text: str
    description: str
    label: str


_FEWEST_DESCRIBED = 4
"""Rows from which on words that repeat are no chance."""

_ROWS_OF_A_WORD = 8
"""Rows of a description, on average, from which on there are few of them."""

_MOST_WORDS = 2
"""Most words of a description that does not name the class, as of a speaker or an aspect."""


def find_described_text(rows: Sequence[Row]) -> DescribedText | None:
    """Return the columns of texts with a label, and with a column of few values that is no second text of a pair.

    Its values name the classes, each label one of them, as ``label_text``, or they are a few short names beside a
    column with the name of single texts. ``None`` for other tables.
    """
    sniffed = sniffed_rows(rows)
    texts = find_text_columns(rows)
    spelled = spelled_names(names_in(sniffed))
    label = find_name(SENTENCE_LABEL_NAMES, spelled)
    if len(texts) != 2 or label is None or len(sniffed) < _FEWEST_DESCRIBED or find_pair(TEXT_PAIRS, spelled):
        return None
    repeated = [name for name in texts if has_repeated_values(rows, name)]
    if len(repeated) != 1:
        return None
    (description,) = repeated
    (text,) = (name for name in texts if name != description)
    uses = Counter((str(cells.get(description)), str(cells.get(label))) for _, cells in sniffed)
    values = {value for value, _ in uses}
    name_the_classes = len(values) == len({name for _, name in uses}) == len(uses) > 1
    are_few = _ROWS_OF_A_WORD * len(values) <= len(sniffed)
    are_names = are_few and max(map(text_length, values)) <= _MOST_WORDS and normalize_name(text) in SINGLE_NAMES
    if name_the_classes or are_names:
        return DescribedText(text, description, label)
    return None


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


class _Doubt(NamedTuple):
    """What speaks against a column of labels, the weightiest first; the lower in order, the likelier."""

    has_texts: bool
    rank_of_name: int
    is_constant: bool
    is_no_question: bool
    has_many_values: bool


def _doubt_of_labels(rows: Sequence[Row], name: str) -> _Doubt:
    values = [str(cells[name]) for _, cells in rows[:SNIFFED_ROWS] if cells.get(name) not in (None, "")]
    answers = values if not are_answers(values) else translate_yes_no(values, name)
    normalized = normalize_name(name)
    rank = len(JUDGEMENT_NAMES)
    if normalized in JUDGEMENT_NAMES:
        rank = JUDGEMENT_NAMES.index(normalized)
    return _Doubt(
        has_texts=not all(to_number(value) is not None or _is_class(value) for value in with_points(answers)),
        rank_of_name=rank,
        is_constant=len(set(values)) == 1,
        is_no_question=name.strip()[-1:] not in SENTENCE_ENDS,
        has_many_values=len(set(values)) > 2,
    )


def _is_class(value: object) -> bool:
    word = word_of(str(value))
    return word in WORDS or word in NLI_VALUES


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
