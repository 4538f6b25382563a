"""Detects the kind of a table from its column names and the cells of its first rows."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from samesense.data.columns.anchor_columns import Layout, find_layout
from samesense.data.columns.guesses import (
    columns_besides,
    example_columns,
    example_of_three_columns,
    find_described_text,
    find_titled_text,
    guessed_pairs,
    text_column,
    triplet_columns,
)
from samesense.data.columns.header_line import refuse_text
from samesense.data.columns.pair_columns import label_and_negative_error, resolve_columns, unread_labels
from samesense.data.columns.text_columns import (
    MOST_LOOKED_INTO,
    describe_lists,
    describe_objects,
    find_text_columns,
    has_repeated_values,
    holds_lists,
    is_text_column,
    object_columns,
    refuse_lists,
    refuse_objects,
)
from samesense.data.conventions.column_names import (
    ANCHOR_NAMES,
    JUDGEMENT_NAMES,
    LABEL_NAMES,
    SENTENCE_LABEL_NAMES,
    SINGLE_NAMES,
    TEXT_PAIRS,
    find_name,
    find_pair,
    is_distance,
    normalize_name,
    refuse_distance,
    spelled_names,
)
from samesense.data.conventions.list_cells import ListCellError, is_list, list_in
from samesense.data.conventions.named_columns import join_columns, join_names, listed, quote_columns, split_columns
from samesense.data.conventions.numbers import is_quantity
from samesense.data.conventions.yes_no import are_answers
from samesense.data.detected_kind import DataKind, DetectedKind
from samesense.data.documents import TEXT_NAMES
from samesense.data.rows.load import names_in
from samesense.errors import DataError
from samesense.types import Row

_MOST_LABEL_WORDS = 2
"""Most words of a label in a list."""

_FEWEST_LABELS = 4
"""Rows from which on labels in lists that repeat are no chance."""


def refuse_lists_of_labels(rows: Sequence[Row], columns: Sequence[str], source: str) -> None:
    """Raise DataError for lists of one short value each that repeats, as annotation tools write labels."""
    for column in columns:
        lists = [_list_in(cell) for _, row in rows if is_list(cell := row.get(column))]
        values = [str(texts[0]) for texts in lists if texts is not None and len(texts) == 1]
        are_short = all(len(value.split()) <= _MOST_LABEL_WORDS for value in values)
        repeat = len(values) >= _FEWEST_LABELS and 2 * len(set(values)) <= len(values)
        if len(values) == len(lists) and are_short and repeat:
            label = next(texts[0] for texts in lists if texts is not None)
            fix = f"frame[{column!r}].str[0]"
            if isinstance(label, dict) and len(label) == 1:
                (name,) = label
                fix += f".str[{name!r}]"
            raise DataError(
                f"{source}: column {column!r} holds lists of one label each, such as {label!r}, and lists are read "
                f"as texts. Write the label itself into the column; in pandas: {fix}. If they are texts that belong to "
                "those before them, write them so too, with columns anchor and positive."
            )


def _list_in(cell: object) -> list[Any] | None:
    """Return the list in a cell; ``None`` if it begins like a list and cannot be parsed, which the reader reports."""
    try:
        return list_in(cell)
    except ListCellError:
        return None


def detect_table_kind(rows: Sequence[Row], source: str) -> DetectedKind:
    """Detect the kind of a table: by lists, by columns of anchors, by the names of pairs, and last by its cells."""
    names = names_in(rows)
    _refuse_repeated_labels(names, source)
    # Lists come first: no other kind has columns of these names with lists.
    list_columns = [name for name in ("sections", "sentences") if holds_lists(rows, name)]
    if list_columns:
        _refuse_pairs_in_lists(rows, list_columns[0], source)
        return DetectedKind("documents", f"the lists in column {list_columns[0]}")
    layout = _layout_of_texts(rows, source)
    anchors = None
    if layout is not None:
        _refuse_numbers(rows, layout, source)
        anchors = DetectedKind("tuples", f"the columns {join_names([layout.anchor, *layout.names])}")
    if anchors and (hold_lists(rows, source) or _has_several_per_side(layout)):
        _refuse_judgements(rows, layout, source)
        return anchors
    label = find_name(LABEL_NAMES, spelled_names(names))
    # Names decide before cells, so that a file stays of one kind when rows are added.
    pairs = _detect_named_pairs(names, source) or _detect_triplet(rows, label, source)
    if pairs is not None:
        return pairs
    # A label beside them may mean that they are pairs, which the cells decide.
    if anchors and label is None:
        _refuse_judgements(rows, layout, source)
        return anchors
    guessed = _detect_from_cells(rows, source)
    if guessed is None:
        raise _unknown_columns(rows, names, source)
    return guessed


_NUMBERED = re.compile(r"(.+) \(1\)")
"""The first of several columns of one name; see :func:`~samesense.data.conventions.column_names.number_repeated`."""


def _refuse_repeated_labels(names: Sequence[str], source: str) -> None:
    """Raise DataError if several columns have the same name of labels: it is unclear which is meant."""
    for name in names:
        match = _NUMBERED.fullmatch(name)
        if match is not None and normalize_name(match[1]) in LABEL_NAMES:
            raise DataError(
                f"{source}: column names must differ; {match[1]!r} stands more than once. Rename the columns, or "
                f"choose some by `columns`: {listed(names)}"
            )


def _refuse_pairs_in_lists(rows: Sequence[Row], column: str, source: str) -> None:
    """Raise DataError for lists of two texts each beside a label, or of texts with a label each: no documents."""
    label = find_name(LABEL_NAMES, spelled_names(names_in(rows)))
    cells = [row.get(column) for _, row in rows]
    if label is not None:
        labels = [_list_in(row.get(label)) for _, row in rows]
        texts = [_list_in(cell) for cell in cells]
        if all(a is not None and b is not None and len(a) == len(b) for a, b in zip(texts, labels, strict=True)):
            raise DataError(
                f"{source}: column {column!r} has several texts in a row, and {label!r} a label for each of them, and "
                "lists of sentences are read as documents. Write a row for each text with its own label, in columns "
                f"text and label; in pandas: frame.explode({[column, label]}). If they are documents, leave the labels "
                "out."
            )
    if label is not None and all(isinstance(cell, list) and len(cell) == 2 for cell in cells):
        raise DataError(
            f"{source}: column {column!r} has two texts in each row, beside {label!r}: they seem to be labelled pairs, "
            "and lists of sentences are read as documents. Write the texts into two columns, sentence1 and sentence2"
        )


def _detect_named_pairs(names: Sequence[str], source: str) -> DetectedKind | None:
    """Return labelled pairs or triplets as the kind if the names are those of pairs; else ``None``."""
    try:
        resolved = resolve_columns(names, None, source)
    except DataError:
        return None
    third = resolved.label or resolved.negative
    evidence = f"the columns {join_names([resolved.text1, resolved.text2, str(third)])}"
    if unread := unread_labels(names, resolved):
        evidence += f", and not by {join_names(unread)}"
    return DetectedKind("pairs", evidence, triplets=resolved.label is None)


def _detect_triplet(rows: Sequence[Row], label: str | None, source: str) -> DetectedKind | None:
    """Return pairs as the kind if three columns are a text, a match and a negative; DataError beside a label."""
    triplet = triplet_columns(rows)
    # A column named as an anchor may have several positives, which pairs cannot have.
    if triplet is None or normalize_name(triplet[0]) in ANCHOR_NAMES:
        return None
    if label is not None:
        raise label_and_negative_error(triplet[:2], label, triplet[2], source)
    return DetectedKind("pairs", f"the columns {join_names(triplet)}", columns=join_columns(triplet), triplets=True)


_JUDGEMENTS = frozenset((*LABEL_NAMES, *JUDGEMENT_NAMES, "logit", "logits"))
"""Column names of relevance judgements for the texts of a row."""

_SCORE = "_score"
"""The end of the names of scores, such as that of a reranker."""


def _refuse_judgements(rows: Sequence[Row], layout: Layout | None, source: str) -> None:
    """Raise DataError for positives beside a judgement that varies, because those judged bad are not positives."""
    # A label, or negatives, already say what does not match.
    if layout is None or layout.label is not None or any(side == "negative" for _, side in layout.partners):
        return
    for name in names_in(rows):
        words = normalize_name(name)
        ranks = words == "rank" or words.endswith("_rank")
        judges = ranks or words in _JUDGEMENTS or words.endswith(_SCORE) or is_distance(name)
        # A column that says the same in all rows judges nothing.
        if name in layout.columns or not judges or not _numbers_of(rows, name, different=True):
            continue
        refuse_distance(name, source)
        pair = join_columns(layout.columns)
        if ranks:
            raise DataError(
                f"{source}: column {name!r} seems to rank the texts of an anchor, and without it all rows would be "
                f"positives. Keep the rows that are; if all are: `columns` {quote_columns(pair)}"
            )
        judged = join_columns([*layout.columns, name])
        raise DataError(
            f"{source}: column {name!r} seems to say how well the texts of a row belong together, and without it all "
            f"rows would be positives. For labelled pairs: `columns` {quote_columns(judged)}; if it says something "
            f"else: `columns` {quote_columns(pair)}"
        )


def _refuse_numbers(rows: Sequence[Row], layout: Layout, source: str) -> None:
    """Raise DataError for a column of negatives that has a number in every row."""
    for name, side in layout.partners:
        if side == "negative" and _numbers_of(rows, name):
            raise DataError(
                f"{source}: column {name!r} has the name of negatives, which are texts, and holds numbers. If they are "
                "labels of the two texts beside them, name the column score."
            )


def _numbers_of(rows: Sequence[Row], column: str, *, different: bool = False) -> bool:
    """Return whether a column holds two or more numbers and nothing else; with ``different``, not all equal."""
    cells = [str(cell).strip() for _, row in rows if (cell := row.get(column)) is not None and str(cell).strip()]
    are_numbers = all(map(is_quantity, cells)) or are_answers(cells)
    return len(cells) > 1 and are_numbers and not (different and len(set(cells)) == 1)


def _unknown_columns(rows: Sequence[Row], names: Sequence[str], source: str) -> DataError:
    """Return the error for columns of unknown meaning, with examples, which need a look at all columns."""
    lists = [name for name in names[:MOST_LOOKED_INTO] if holds_lists(rows, name)]
    refuse_lists_of_labels(rows, lists, source)
    for name in lists:
        if all(_are_two_texts(row.get(name)) for _, row in rows):
            return DataError(
                f"{source}: column {name!r} holds lists of two texts each, and the texts of a pair have a column each. "
                "Write them into two columns, sentence1 and sentence2; texts that belong together into anchor and "
                "positive."
            )
    three = example_of_three_columns(rows)
    alternative = ""
    if three:
        alternative = f"; or, if the third belongs to neither: `columns` {quote_columns(three)}"
    try:
        # This fails, and its error names what is missing.
        resolve_columns(names, None, source, example=example_columns(rows))
    except DataError as error:
        objects = describe_objects(rows)
        if objects and all(has_repeated_values(rows, name) for name in find_text_columns(rows)):
            return DataError(
                f"{source}: columns of texts could not be found. Its columns: {listed(names)}. By the first rows, "
                f"{objects}"
            )
        if not find_text_columns(rows) and (in_lists := describe_lists(rows)):
            return DataError(
                f"{source}: columns of texts could not be found. Its columns: {listed(names)}. By the first rows, "
                f"{in_lists}"
            )
        return DataError(f"{error}{alternative}")
    return DataError(f"{source}: no columns of texts could be found.{alternative}")


def _are_two_texts(cell: object) -> bool:
    return isinstance(cell, list) and len(cell) == 2 and all(isinstance(text, str) for text in cell)


@dataclass(frozen=True, kw_only=True)
class _Table:
    """The first rows of a table whose names are not those of labelled pairs, and what its columns are."""

    rows: Sequence[Row]
    source: str
    spelled: dict[str, str]  # its names by their normalized form
    texts: Sequence[str]  # the columns of texts
    others: Sequence[str]  # the columns beside those, without subsets and identifiers
    single: str | None  # the column with the name of a single text
    label: str | None  # the column with the name of a sentence's label


def _detect_from_cells(rows: Sequence[Row], source: str) -> DetectedKind | None:
    """Guess the kind of a table from its cells, where its names are not those of pairs; ``None`` if nothing fits."""
    names = names_in(rows)
    texts = find_text_columns(rows)
    spelled = spelled_names(names)
    table = _Table(
        rows=rows,
        source=source,
        spelled=spelled,
        texts=texts,
        others=columns_besides(names, texts),
        single=find_name(SINGLE_NAMES, spelled),
        label=find_name(SENTENCE_LABEL_NAMES, spelled),
    )
    return next((kind for guess in _GUESSES if (kind := guess(table)) is not None), None)


def _detect_named_classes(table: _Table) -> DetectedKind | None:
    """Detect sentences with classes by known names for a text and a label, without a second text."""
    if not table.single or not table.label or len(table.texts) > 1:
        return None
    _refuse_lists_of_labels_in(table)
    return DetectedKind("classes", f"the columns {table.single} and {table.label}")


def _guess_titled(table: _Table) -> DetectedKind | None:
    """Take texts that have a title and a class for sentences with classes."""
    titled = find_titled_text(table.rows)
    if titled is None:
        return None
    _refuse_lists_of_labels_in(table)
    evidence = f"a column of texts, {titled.text}, and {titled.label}, without {titled.title}"
    hint = f"for pairs of the two, `columns` {quote_columns(join_columns(titled))}"
    return _guess("classes", [titled.text, titled.label], f"{evidence}; {hint}")


def _guess_described(table: _Table) -> DetectedKind | None:
    """Take texts with a label, and with words that only describe them, for sentences with classes."""
    described = find_described_text(table.rows)
    if described is None:
        return None
    evidence = f"the columns {described.text} and {described.label}, without {described.description}"
    hint = f"for pairs of the two, `columns` {quote_columns(join_columns(described))}"
    return _guess("classes", [described.text, described.label], f"{evidence}; {hint}")


def _refuse_lists_of_labels_in(table: _Table) -> None:
    if table.label is not None and holds_lists(table.rows, table.label):
        refuse_lists_of_labels(table.rows, [table.label], table.source)


def _guess_labelled_pairs(table: _Table) -> DetectedKind | None:
    pairs = guessed_pairs(table.rows)
    if pairs is None:
        return None
    return DetectedKind("pairs", f"two columns of texts and {split_columns(pairs)[-1]}", sure=False, columns=pairs)


def _guess_two_texts(table: _Table) -> DetectedKind | None:
    # A premise and a hypothesis need a label, so that two columns of them are not taken for pairs that match.
    if len(table.texts) != 2 or table.others or {"premise", "hypothesis"} <= table.spelled.keys():
        return None
    return _guess_two_columns(table.rows, table.texts, table.source)


def _guess_text_and_label(table: _Table) -> DetectedKind | None:
    if len(table.texts) != 1 or table.label is None or table.others != [table.label]:
        return None
    return _guess("classes", [table.texts[0], table.label], f"a column of texts and {table.label}")


def _guess_single_of_texts(table: _Table) -> DetectedKind | None:
    """Take the column with the name of a single text, of several columns of texts, for that of the label."""
    if table.single not in table.texts or not table.label or len(table.texts) < 3 or _has_pair_names(table):
        return None
    # Beside a question, a sentence is one of its answers.
    if sum(normalize_name(name) in (*SINGLE_NAMES, *ANCHOR_NAMES) for name in table.texts) > 1:
        return None
    unread = join_names([name for name in table.texts if name != table.single])
    evidence = f"the columns {table.single} and {table.label}, without {unread}"
    return _guess("classes", [str(table.single), table.label], evidence)


def _has_pair_names(table: _Table) -> bool:
    return find_pair(TEXT_PAIRS, table.spelled) is not None


def _lacks_label(table: _Table) -> bool:
    """Return whether a table seems to hold pairs whose label is missing, or not known for one; an error says which."""
    # A second text beside yes and no is a pair, under names that do not say so.
    is_answered = len(table.texts) == 2 and len(table.others) == 1 and _holds_answers(table.rows, table.others[0])
    return is_answered or _has_pair_names(table)


def _detect_single_texts(table: _Table) -> DetectedKind | None:
    if _lacks_label(table):
        return None
    document_names = [name for name in TEXT_NAMES if table.spelled.get(name) in table.texts]
    if document_names and not table.single:
        return DetectedKind("documents", f"the column {document_names[0]}")
    return _detect_text_column(table.rows, table.texts, table.single, table.source)


_GUESSES: tuple[Callable[[_Table], DetectedKind | None], ...] = (
    _detect_named_classes,
    _guess_titled,
    _guess_described,
    _guess_labelled_pairs,
    _guess_two_texts,
    _guess_text_and_label,
    _guess_single_of_texts,
    _detect_single_texts,
)
"""What a table may be, the first that fits; names decide before cells."""


def _detect_text_column(
    rows: Sequence[Row], texts: Sequence[str], single_column: str | None, source: str
) -> DetectedKind | None:
    """Return texts as the kind, with the column to read and those left unread; ``None`` if it is ambiguous."""
    if len(texts) == 1 and single_column is None:
        refuse_lists(rows, texts, source)
        refuse_text(texts, source, rows)
        refuse_objects(rows, texts[0], source)
    try:
        column = text_column(rows, None, source)
    except DataError:
        return None
    unused = [name for name in texts if name != column]
    if single_column is None:
        unused += object_columns(rows)
    label = find_name(LABEL_NAMES, spelled_names(names_in(rows)))
    # A label is no text, and to read the texts alone loses it.
    if label is not None and label != column:
        unused.append(label)
    unused += [name for name in names_in(rows) if _holds_groups(rows, name)]
    if column == single_column and not unused:
        return DetectedKind("texts", f"the column {column}")
    if unused:
        beside = f"the column {column}, without {join_names(unused)}"
    else:
        beside = f"the only column of texts, {column}"
    sure = len(names_in(rows)) == 1
    return DetectedKind("texts", beside, sure, None if sure else column)


_GROUPS = frozenset("cluster cluster_id group group_id duplicate_group duplicate_id intent_id topic_id".split())
"""Names of columns whose equal values say which texts belong together."""


def _holds_groups(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column says by its name and its numbers which texts belong together."""
    return normalize_name(name) in _GROUPS and has_repeated_values(rows, name) and not is_text_column(rows, name)


def _guess_two_columns(rows: Sequence[Row], texts: Sequence[str], source: str) -> DetectedKind:
    """Return the kind of two text columns without other columns: sentences with classes, or pairs that match."""
    refuse_text(texts, source, rows)
    for classes, sentences in ((texts[1], texts[0]), (texts[0], texts[1])):
        # In three rows or fewer, repeated values may be chance.
        repeats = len(rows) > 3 and has_repeated_values(rows, classes) and not has_repeated_values(rows, sentences)
        if repeats and _may_be_classes(rows, classes, sentences):
            return _guess(
                "classes", [sentences, classes], f"a column of texts, {sentences}, and one of few values, {classes}"
            )
    return _guess(
        "tuples", texts, f"two columns of texts without a label, {join_names(texts)}, taken to belong together"
    )


def _holds_answers(rows: Sequence[Row], name: str) -> bool:
    """Return whether a column says yes and no, in words, truth values or 1 and 0."""
    values = {str(cell).strip() for _, cells in rows if (cell := cells.get(name)) not in (None, "")}
    return values in ({"0", "1"}, {"0.0", "1.0"}, {"True", "False"}) or (len(values) == 2 and are_answers(list(values)))


ROWS_OF_A_CLASS = 8
"""Rows of a value, on average, from which on it is a class even if it is longer than the sentences."""


def _may_be_classes(rows: Sequence[Row], classes: str, sentences: str) -> bool:
    """Return whether values that repeat may be classes: they are no longer than the sentences, or are few.

    A premise is longer than its hypotheses, and no class of them. A path of a catalogue is longer than the names below
    it, and their class.
    """
    distinct_values = {str(cells.get(classes)) for _, cells in rows}
    are_few = ROWS_OF_A_CLASS * len(distinct_values) <= len(rows)
    return are_few or _characters_in(rows, classes) <= _characters_in(rows, sentences)


def _characters_in(rows: Sequence[Row], column: str) -> int:
    """Return the number of characters of a column's cells."""
    return sum(len(str(cells.get(column) or "")) for _, cells in rows)


def _guess(kind: DataKind, columns: Sequence[str], by: str) -> DetectedKind:
    return DetectedKind(kind, by, sure=False, columns=join_columns(columns))


def _layout(names: Sequence[str], source: str) -> Layout | None:
    """Return the columns of an anchor with its positives and negatives; ``None`` without such columns."""
    try:
        return find_layout(names, source)
    except DataError:
        return None


def _layout_of_texts(rows: Sequence[Row], source: str) -> Layout | None:
    """Return the columns of an anchor with its partners; ``None`` if a partner is neither a text nor a list."""
    layout = _layout(names_in(rows), source)
    # An anchor by its own name settles it; one by the names beside it must have texts there.
    if layout is None or normalize_name(layout.anchor) in ANCHOR_NAMES:
        return layout
    are_texts = (is_text_column(rows, name) or holds_lists(rows, name) for name in layout.names)
    if all(are_texts):
        return layout
    return None


def _has_several_per_side(layout: Layout | None) -> bool:
    """Return whether an anchor has two columns of positives or two of negatives, so that it is not a triplet."""
    sides = [side for _, side in layout.partners] if layout else []
    return sides.count("positive") > 1 or sides.count("negative") > 1


def hold_lists(rows: Sequence[Row], source: str) -> bool:
    """Return whether rows are anchors with lists of positives or negatives."""
    layout = _layout(names_in(rows), source)
    if layout is None or layout.label is not None:
        return False
    return any(holds_lists(rows, name) for name in layout.names)
