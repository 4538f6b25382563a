"""Score a table: it is read twice, first to check all rows, then block by block to score and write."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, NamedTuple

from samesense.choices import DecimalMark
from samesense.data.columns.text_columns import SNIFFED_ROWS
from samesense.data.rows.compression import split_suffix
from samesense.data.rows.load import load_rows, names_in, no_rows_error
from samesense.data.rows.sources import Source, in_memory, missing_file_error, name_of
from samesense.data.rows.table_options import DELIMITERS
from samesense.data.rows.written import WrittenRow, WrittenTable, is_written, read_written
from samesense.errors import ConfigError, DataError
from samesense.execution.progress import progress_bar
from samesense.files import open_output
from samesense.inference.scoring.columns import SAME, ScoreColumns, Values, pair_of, text_columns
from samesense.inference.scoring.frames import with_columns
from samesense.inference.scoring.summary import Scored
from samesense.inference.scoring.writers import TextWriter, added_text, decimal_of
from samesense.inference.tables import Table, check_unchanged, format_of, write_for_excel, write_tables
from samesense.places import writing_outputs
from samesense.types import Row
from samesense.urls import is_file, local

if TYPE_CHECKING:
    import pyarrow as pa

    from samesense.inference.models.model import Model

logger = logging.getLogger(__name__)

BLOCK = 2048
"""Number of rows that are scored and written at once."""


@dataclass(frozen=True)
class WritingOptions:
    """How a scored table is written.

    Attributes:
        output: file, or ``"-"`` for standard output.
        decimal: decimal mark; ``None`` for that of the table.
        excel: write CSV in the form that Excel opens.
        overwrite: replace an existing file.
    """

    output: str
    decimal: DecimalMark | None = None
    excel: bool = False
    overwrite: bool = False

    def form(self, source: str) -> str:
        """Return the suffix of the output's format; ConfigError if tables have no such format."""
        suffix = split_suffix(source).suffix.replace(".ndjson", ".jsonl")
        form = format_of(self.output, suffix if suffix in (".csv", ".jsonl") else ".tsv", table=True)
        if self.excel and form != ".csv":
            raise ConfigError(f"`excel` is for an output that ends in .csv; received {self.output!r}.")
        return form

    def writing(self, inputs: Sequence[str | None]) -> AbstractContextManager[None]:
        """Check and hold the output during the work; see :func:`~samesense.places.writing_outputs`."""
        return writing_outputs([self.output], inputs, overwrite=self.overwrite)


class SourceRow(NamedTuple):
    """A row of any source; ``written`` is its text, if the source is a text file."""

    number: int
    cells: Mapping[str, Any] | None
    written: WrittenRow | None


@dataclass
class Survey:
    """The results of a first pass over all rows of a table.

    Attributes:
        names: names of the columns.
        compared: the two columns to compare.
        rows: number of rows up to the last filled one, blank ones included.
        without: numbers of the rows without two texts.
        decimal: decimal mark of the table's cells.
        blank: numbers of the blank rows after the last filled one.
    """

    names: list[str]
    compared: tuple[str, str]
    rows: int = 0
    without: list[int] = field(default_factory=list)
    decimal: DecimalMark | None = None
    blank: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._names = set(self.names)

    @property
    def total(self) -> int:
        """Number of rows, blank ones at the end included."""
        return self.rows + len(self.blank)

    def count(self, row: SourceRow) -> None:
        """Count the next row."""
        if row.cells is None:
            self.blank.append(row.number)
            return
        self.names += [name for name in row.cells if name not in self._names]
        self._names.update(self.names[len(self._names) :])
        # Blank rows before a filled one were not at the end after all.
        self.without += self.blank
        self.rows += len(self.blank) + 1
        self.blank.clear()
        if pair_of(row.cells, self.compared) is None:
            self.without.append(row.number)


class ScoredSource:
    """A table that can be read several times."""

    def __init__(self, source: Source, name: str = "") -> None:
        self.name = name or name_of(source)
        self.source = local(source) if isinstance(source, str) else source
        self.is_text = not in_memory(source) and is_written(str(source))
        if self.is_text and not is_file(str(self.source)):
            raise missing_file_error(str(source))

    def written(self) -> WrittenTable:
        """Open a text file, and return it with the text of its rows."""
        return read_written(self.source)

    def rows(self, table: WrittenTable | None = None) -> Iterator[SourceRow]:
        """Yield all rows; ``table`` is the text file, if it is opened already."""
        if self.is_text:
            written_table = table or self.written()
            for row in written_table.rows:
                yield SourceRow(row.number, row.cells, row)
        else:
            for number, cells in load_rows(self.source):
                yield SourceRow(number, cells, None)

    def survey(self, columns: str | None) -> Survey:
        """Read all rows once, so that errors in them are raised before any scoring."""
        rows = self.rows()
        first = list(islice(rows, SNIFFED_ROWS))
        filled: list[Row] = [(row.number, row.cells) for row in first if row.cells is not None]
        if not filled:
            raise no_rows_error(self.source)
        survey = Survey(names_in(filled), text_columns(filled, columns, self.name))
        remaining = [name for name in survey.names if name not in survey.compared]
        if self.is_text:
            survey.decimal = decimal_of(cells[name] for _, cells in filled for name in remaining if name in cells)
        for row in chain(first, rows):
            survey.count(row)
        if len(survey.without) == survey.rows:
            raise DataError(
                f"{self.name}: no row has two texts to compare, in the columns {survey.compared[0]} and "
                f"{survey.compared[1]}. Name others: `columns` FIRST,SECOND"
            )
        return survey


def few_texts(source: ScoredSource, survey: Survey) -> list[str] | None:
    """Return all texts of a table of at most one block, ``None`` for a longer table."""
    if survey.total > BLOCK:
        return None
    pairs = (pair_of(row.cells, survey.compared) for row in source.rows())
    return [text for pair in pairs if pair is not None for text in pair]


ScoredRows = Iterable[tuple[SourceRow, dict[str, Any]]]
"""Rows with their new cells."""


def scored_rows(
    source: ScoredSource, survey: Survey, columns: ScoreColumns, model: Model, table: WrittenTable | None = None
) -> Iterator[tuple[SourceRow, dict[str, Any]]]:
    """Yield all rows with their new cells, scored block by block; DataError if the number of rows has changed."""
    rows = source.rows(table)
    count = 0
    with progress_bar("score", "row", survey.total) as bar:
        while block := list(islice(rows, BLOCK)):
            values = columns.values([pair_of(row.cells, survey.compared) for row in block], model)
            for position, row in enumerate(block):
                yield row, {name: cells[position] for name, cells in values.items()}
            count += len(block)
            bar.update(len(block))
    check_unchanged(source.name, survey.total, count)


class _SameCounter:
    """Counts the rows whose texts are the same."""

    def __init__(self, columns: ScoreColumns) -> None:
        self._name = columns.prefix + SAME
        self.count = 0

    def counting(self, rows: ScoredRows) -> ScoredRows:
        """Yield the rows unchanged, and count them."""
        for row, cells in rows:
            # The cell is None in a row without two texts.
            self.count += cells.get(self._name) is True
            yield row, cells


def write_scored(
    source: ScoredSource, survey: Survey, columns: ScoreColumns, model: Model, options: WritingOptions
) -> Scored:
    """Score a table and write it; the file is written completely or not at all."""
    columns.check(survey.names, source.name)
    form = options.form(str(source.source))
    same = _SameCounter(columns)
    table = source.written() if source.is_text else None
    rows = same.counting(scored_rows(source, survey, columns, model, table))
    decimal: DecimalMark = "point"
    if form in (".csv", ".tsv"):
        decimal = _decimal(options, survey, table, source.name)
    if table is not None and table.suffix == form and not options.excel:
        writer = TextWriter(table, columns.names, decimal)
        with open_output(options.output) as stream:
            writer.write(((row.written, cells) for row, cells in rows if row.written is not None), stream)
    else:
        _write_cells(rows, survey.names, columns.names, form, decimal, options, str(source.source))
    return Scored(
        source=source.name,
        rows=survey.rows,
        without=tuple(survey.without),
        compared=survey.compared,
        columns=tuple(columns.names),
        threshold=columns.threshold,
        same=same.count if columns.threshold is not None else None,
        output=options.output,
    )


def score_in_memory(source: ScoredSource, survey: Survey, columns: ScoreColumns, model: Model) -> Any:
    """Return a table with its scores: of the same type as the source, or for a file an Arrow table."""
    values: Values = {name: [] for name in columns.names}
    rows: list[Row] = []
    for row, cells in scored_rows(source, survey, columns, model):
        # with_columns takes the rows of a table in memory from the table itself.
        if not in_memory(source.source) and row.cells is not None:
            rows.append((row.number, {**row.cells, **cells}))
        for name, cell in cells.items():
            values[name].append(cell)
    if in_memory(source.source):
        return with_columns(source.source, values)
    return _as_arrow(rows, [*survey.names, *columns.names], source.name)


def _as_arrow(rows: Sequence[Row], names: Sequence[str], source: str) -> pa.Table:
    # pyarrow is needed for Parquet alone.
    import pyarrow as pa

    from samesense.inference.arrow import MisfitError, infer_type, to_array

    arrays = []
    for name in names:
        cells = [row_cells.get(name) for _, row_cells in rows]
        try:
            arrays.append(to_array(cells, infer_type(cells)))
        except MisfitError as error:
            raise DataError(
                f"{source}, row {rows[error.position][0]}, column {name!r}: a column of an Arrow table holds values of "
                f"one type ({error}). Give `output`, a file that ends in .jsonl."
            ) from error
    return pa.Table.from_arrays(arrays, names=list(names))


def _write_cells(
    rows: ScoredRows,
    names: Sequence[str],
    added: Sequence[str],
    form: str,
    decimal: DecimalMark,
    options: WritingOptions,
    source: str,
) -> None:
    """Write rows in another format than that of the source."""
    cells = ({**(row.cells or {}), **new} for row, new in rows)
    if form in (".csv", ".tsv"):
        cells = ({**row, **{name: added_text(row[name], decimal) for name in added}} for row in cells)
    table = Table(cells, options.output, form, [*names, *added])
    if options.excel:
        # Where decimals have commas, these cannot stand between fields too.
        write_for_excel(table, DELIMITERS["semicolon" if decimal == "comma" else "comma"])
    else:
        write_tables(table, source=source)


def _decimal(options: WritingOptions, survey: Survey, table: WrittenTable | None, source: str) -> DecimalMark:
    """Return the decimal mark of scores: the requested one, that of the table, or the one that fits its delimiter."""
    if options.decimal is not None:
        return options.decimal
    if survey.decimal is not None:
        return survey.decimal
    if table is not None and table.form.delimiter == ";":
        logger.warning(
            f"{source}: scores are written with a decimal comma, as semicolons stand between the fields, and the table "
            "has no decimals that say otherwise. For points: `decimal` point"
        )
        return "comma"
    return "point"
