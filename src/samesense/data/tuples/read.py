"""Reads anchors with positives and negatives from any source: NLI rows by premise, lists of any length, triplets."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import NamedTuple

from samesense.data.columns.anchor_columns import Layout, find_layout
from samesense.data.columns.labels import parse_labels
from samesense.data.columns.pair_columns import Columns
from samesense.data.columns.text_columns import SNIFFED_ROWS
from samesense.data.columns.unread_columns import log_unread, warn_of_marked_rows
from samesense.data.conventions.class_names import INITIALS, UNLABELLED
from samesense.data.conventions.column_names import Side
from samesense.data.conventions.list_cells import FIX, ListCellError, list_in, texts_in
from samesense.data.rows.bad_rows import BadRow, bad_rows_error, bad_texts
from samesense.data.rows.load import load_rows, names_in, no_rows_error, row_names
from samesense.data.rows.sources import Source, as_sources, name_of, short_name
from samesense.data.tuples.data import ITSELF, Statement, TupleData, group_statements, tuple_data
from samesense.errors import DataError
from samesense.failures import excerpt
from samesense.places import JOINT
from samesense.types import Row

SIDES: dict[float, Side] = {0.0: "negative", 1.0: "neutral", 2.0: "positive"}
"""The side of a hypothesis, seen from its premise, by class label."""

_NO_LABEL = "rows without a label"
_BAD = "bad rows"


def read_tuples(
    sources: Source,
    *,
    columns: str | None = None,
    group_anchors: bool = True,
    label_order: str | None = None,
    drop_bad_rows: bool | None = False,
    limit_reported: int = 5,
) -> TupleData:
    """Read anchors with their positives and negatives from one source or several.

    Args:
        sources: files, folders saved by ``datasets`` or hub names; see ``load_rows``. The layouts may differ.
        columns: the source's names for ``"anchor,positive"``, ``"anchor,positive,negative"`` or
            ``"premise,hypothesis,label"``.
        group_anchors: merge the rows of one anchor. Rows of NLI data are always merged.
        label_order: names of integer inference classes 0, 1, 2 in order.
        drop_bad_rows: leave bad rows out and count them, instead of refusing the source; ``None`` where no option
            does, which the error then does not propose.
        limit_reported: how many bad rows the error shows.

    Raises:
        DataError: if a source cannot be read, has columns of no known layout or bad rows, or nothing is left.
        ConfigError: if ``label_order`` is malformed or contradicts the data.
    """
    source_list = as_sources(sources)
    left_out = {_NO_LABEL: 0, _BAD: 0}
    readers = [
        _Reader(name_of(source), number, columns, group_anchors, label_order, left_out)
        for number, source in enumerate(source_list)
    ]
    limit = None if drop_bad_rows else limit_reported
    can_drop = drop_bad_rows is not None
    statements = (
        reader.statements(source, limit, can_drop=can_drop) for reader, source in zip(readers, source_list, strict=True)
    )
    groups = group_statements(chain.from_iterable(statements))
    source = JOINT.join(map(name_of, source_list))
    data = tuple_data(groups, source=source, name=JOINT.join(map(short_name, source_list)), left_out=left_out)
    if not any(data.positives):
        equal = data.left_out.get(ITSELF, 0)
        besides = f", besides {equal} that are their anchor" if equal else ""
        raise DataError(
            f"{source}: no anchor has a positive among {len(data)}{besides}. Give NLI data with entailments, "
            "columns of positives that are filled, or the names of the columns: `columns` anchor,positive,negative"
        )
    return data


class _ParsedSide(NamedTuple):
    """The side that a label stands for, or what is wrong with the label; neither if a row has no label."""

    side: Side | None = None
    problem: str = ""


class _Reader:
    """Turns the rows of one source into statements, and collects the bad rows."""

    def __init__(
        self,
        source: str,
        number: int,
        columns: str | None,
        group_anchors: bool,
        label_order: str | None,
        counts: dict[str, int],
    ) -> None:
        self.source = source
        self.number = number
        self.columns = columns
        self.group_anchors = group_anchors
        self.label_order = label_order
        self.counts = counts
        self.sides: dict[str, _ParsedSide] = {}  # by the labels so far
        self.first_rows: dict[str, dict[bool, int]] = {}  # by column: first row with a list, and with a single text

    def statements(self, source: Source, limit: int | None, *, can_drop: bool) -> Iterator[Statement]:
        """Yield the statements of the rows; at the end, raise an error for bad rows that shows ``limit`` of them."""
        layouts: dict[tuple[str, ...], Layout] = {}  # rows of JSON may have different keys
        problems: list[BadRow] = []
        total = 0
        rows = load_rows(source)
        first = list(islice(rows, SNIFFED_ROWS))
        for row in chain(first, rows):
            total += 1
            names = row_names(row[1])
            if names not in layouts:
                location = f"{self.source}, row {row[0]}" if layouts else self.source
                # A named column may be absent from some rows, as a null is left out of JSON.
                possible = names if self.columns is None else names_in([*first, row])
                layouts[names] = find_layout(possible, location, self.columns)
                same_layout = [candidate for candidate in first if row_names(candidate[1]) == names]
                if self.columns is None:
                    log_unread(same_layout, layouts[names].columns, self.source, labels=True)
                elif same_layout:
                    warn_of_marked_rows(same_layout, layouts[names].columns, self.source)
            layout = layouts[names]
            read_row = self._read_tuple if layout.label is None else self._read_nli
            row_statements, row_problems = read_row(row, layout)
            if not row_problems:
                yield from row_statements
            problems += row_problems
        if problems and limit is not None:
            raise bad_rows_error(self.source, problems, total, limit, can_drop=can_drop)
        self.counts[_BAD] += len({problem.row for problem in problems})
        if not total:
            raise no_rows_error(source)

    def _read_tuple(self, row: Row, layout: Layout) -> tuple[list[Statement], list[BadRow]]:
        number, cells = row
        problems = bad_texts(row, [layout.anchor])
        problems += _list_problems(number, layout.anchor, cells.get(layout.anchor))
        anchor = str(cells.get(layout.anchor))
        # Without merging, each row is a group; the source's number distinguishes rows of equal number.
        group = anchor if self.group_anchors else f"{self.number} {number}"
        statements: list[Statement] = []
        for name, side in layout.partners:
            try:
                texts = texts_in(cells.get(name))
            except ListCellError as error:
                problems.append(BadRow(number, name, str(error), FIX))
                continue
            self._check_mixture(number, name, cells.get(name))
            problems += [problem for text in texts for problem in bad_texts((number, {name: text}), [name])]
            statements += [Statement(group, anchor, str(text), side, number) for text in texts]
        if not statements and not problems:
            problems.append(
                BadRow(number, layout.anchor, "the anchor stands alone", "give it a positive or a negative")
            )
        return statements, problems

    def _check_mixture(self, number: int, name: str, cell: object) -> None:
        """Raise DataError if some cells of a column are lists written as text, and others are single texts."""
        if not isinstance(cell, str) or not cell.strip():
            return
        forms = self.first_rows.setdefault(name, {})
        forms.setdefault(list_in(cell) is not None, number)
        if len(forms) == 2:
            raise DataError(
                f"{self.source}, column {name!r}: the cell of row {forms[True]} is a list of texts, and that of row "
                f"{forms[False]} is one text. Write every cell of the column as a list, or none."
            )

    def _read_nli(self, row: Row, layout: Layout) -> tuple[list[Statement], list[BadRow]]:
        number, cells = row
        hypothesis = layout.partners[0][0]
        problems = bad_texts(row, [layout.anchor, hypothesis])
        parsed = self._parse_side(cells.get(str(layout.label)), layout)
        if parsed.problem:
            fix = "correct the label, or write - if there is none"
            problems.append(BadRow(number, str(layout.label), parsed.problem, fix))
        if problems:
            return [], problems
        if parsed.side is None:
            self.counts[_NO_LABEL] += 1
            return [], []
        anchor = str(cells[layout.anchor])
        return [Statement(anchor, anchor, str(cells[hypothesis]), parsed.side, number)], []

    def _parse_side(self, cell: object, layout: Layout) -> _ParsedSide:
        text = "" if cell is None else str(cell).strip().casefold()
        if text in UNLABELLED:
            return _ParsedSide()
        if text not in self.sides:
            columns = Columns(layout.anchor, layout.partners[0][0], layout.label)
            initials: list[str] = []
            # The other two go with it, because n alone would be read as no.
            if text in INITIALS:
                initials = ["e", "c"]
            parsed = parse_labels([*initials, cell], columns, self.source, self.label_order)
            value = parsed.values[-1]
            if parsed.kind == "nli" and value is not None:
                self.sides[text] = _ParsedSide(SIDES[value])
            else:
                problem = f"label {excerpt(cell)} is not entailment, neutral or contradiction"
                self.sides[text] = _ParsedSide(problem=problem)
        return self.sides[text]


def _list_problems(number: int, column: str, cell: object) -> list[BadRow]:
    """Return a problem if a cell that should be one text is a list of texts."""
    try:
        is_list = isinstance(cell, str) and bool(list_in(cell))
    except ListCellError:
        return []  # a text may start with a bracket
    if not is_list:
        return []
    return [BadRow(number, column, "one text is needed, received a list of texts", "write one anchor a row")]
