"""``samesense dedup``: near-duplicates among the rows of a file, and the file without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from samesense.api import duplicates
from samesense.cli.command import command_of
from samesense.cli.output import DropTexts, FileOrInput, FileOrOutput, Flag, Json, logger, put_json, refuse_mixed_output

if TYPE_CHECKING:
    from samesense.data.texts import SourceTexts
    from samesense.inference.duplicates.dedup import Deduplicated
    from samesense.inference.tables import Cells

    RowsOf = Callable[[Iterator[Cells], SourceTexts, Deduplicated, Sequence[str]], Iterator[Cells]]


@command_of(duplicates.dedup)
def dedup(
    source: FileOrInput,
    /,
    *,
    output: FileOrOutput = "-",
    removed: str | None = None,
    groups: str | None = None,
    overwrite: Flag = False,
    drop_bad_rows: DropTexts = False,
    json: Json = False,
    **options: Any,
) -> None:
    """samesense dedup questions.csv --output kept.csv --removed removed.csv

    Args:
        output: file for the rows that are kept, with all their columns: .txt, .tsv, .csv, .jsonl or .parquet; - is
            standard output.
        removed: file for the other rows, each with the number and the text of the row that is kept, and their cosine.
        groups: file for the rows of groups of two or more, the largest group first.
        overwrite: replace existing files.
        json: print the counts as a JSON object; the rows go to files.
    """
    from samesense.data.texts import is_table, read_usable
    from samesense.execution.unread import name_rows
    from samesense.inference.names import place_of
    from samesense.inference.tables import Table, behind, format_of, rows_of, write_tables
    from samesense.places import writing_outputs

    refuse_mixed_output(output, "the rows that are kept", json=json)
    form = ".tsv" if is_table(source) else ".txt"
    outputs = [(name, format_of(name, form)) for name in (output, removed, groups) if name is not None]
    names = [name for name, _ in outputs]
    with writing_outputs(names, [source, place_of(options["model"]), options["pairs"]], overwrite=overwrite):
        read = read_usable(source, options.pop("columns"), drop_bad_rows=drop_bad_rows)
        name_rows(read.texts, read.indices)
        deduplicated = duplicates.dedup(read.texts, **options)
        # In the order of the outputs, of which the last two may be missing.
        contents: list[tuple[RowsOf, tuple[str, ...]]] = [(_kept_rows, ())]
        if removed is not None:
            contents.append((_removed_rows, REMOVED))
        if groups is not None:
            contents.append((_grouped_rows, GROUPED))
        tables = []  # rows are generated while they are written
        for (name, form), (content, new_columns) in zip(outputs, contents, strict=True):
            added_columns = list(behind(read.names, new_columns).values())
            rows = content(rows_of(source, read, form), read, deduplicated, added_columns)
            tables.append(Table(rows, name, form, [*read.names, *added_columns]))
        write_tables(*tables, source=source)
    if json:
        put_json([deduplicated.to_dict()])
    logger.info(str(deduplicated))


def _kept_rows(
    rows: Iterator[Cells], _: SourceTexts, deduplicated: Deduplicated, added_columns: Sequence[str]
) -> Iterator[Cells]:
    for row, (cells, kept_row) in enumerate(zip(rows, deduplicated.kept_by.tolist(), strict=False)):
        if kept_row == row:
            yield cells


REMOVED = ("row", "kept_row", "kept_text", "cosine")
GROUPED = ("group", "row", "kept", "cosine")
"""New columns, after those of the source."""


def _removed_rows(
    rows: Iterator[Cells], read: SourceTexts, deduplicated: Deduplicated, added_columns: Sequence[str]
) -> Iterator[Cells]:
    for row, (cells, kept_row) in enumerate(zip(rows, deduplicated.kept_by.tolist(), strict=False)):
        if kept_row != row:
            score = round(float(deduplicated.scores[row]), 6)
            new_cells = (read.indices[row] + 1, read.indices[kept_row] + 1, read.texts[kept_row], score)
            yield {**cells, **dict(zip(added_columns, new_cells, strict=True))}


def _grouped_rows(
    rows: Iterator[Cells], read: SourceTexts, deduplicated: Deduplicated, added_columns: Sequence[str]
) -> Iterator[Cells]:
    groups = deduplicated.groups
    members = {row for group in groups for row in group.rows}
    # Rows of a group may be far apart in the file, so that they are collected first.
    member_cells = {row: cells for row, cells in enumerate(rows) if row in members}
    for number, group in enumerate(groups, 1):
        for row in group.rows:
            new_cells = (number, read.indices[row] + 1, row == group.kept, round(float(deduplicated.scores[row]), 6))
            yield {**member_cells[row], **dict(zip(added_columns, new_cells, strict=True))}
