"""``samesense dedup``: near-duplicates among the rows of a file, and the file without them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from samesense.cli.output import (
    DEFAULT_FORMAT,
    DropTexts,
    Json,
    PrecisionFlag,
    TableFlags,
    TextColumns,
    Threshold,
    logger,
    put_json,
    reads_tables,
)
from samesense.encoder.windows import Chunk
from samesense.errors import ConfigError

if TYPE_CHECKING:
    from samesense.data.texts import SourceTexts
    from samesense.inference.duplicates.dedup import Deduplicated
    from samesense.inference.tables import Cells

    RowsOf = Callable[[Iterator[Cells], SourceTexts, Deduplicated, Sequence[str]], Iterator[Cells]]


@reads_tables
def dedup(
    source: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    output: Annotated[str, Parameter(name=["--output", "-o"], allow_leading_hyphen=True)] = "-",
    removed: str | None = None,
    groups: str | None = None,
    model: str = "default",
    threshold: Annotated[Threshold | None, Parameter(allow_leading_hyphen=True)] = None,
    min_precision: float | None = None,
    pairs: str | None = None,
    by: Literal["representative", "linked"] = "representative",
    keep: Literal["first", "longest", "central"] = "first",
    search: Literal["auto", "exact", "approximate"] = "auto",
    work: Path | None = None,
    chunk: Chunk | None = None,
    columns: TextColumns = None,
    reading: TableFlags = DEFAULT_FORMAT,
    drop_bad_rows: DropTexts = False,
    precision: PrecisionFlag = "auto",
    json: Json = False,
) -> None:
    """Find rows with near-duplicate texts, and keep one of each.

    samesense dedup questions.csv --output kept.csv --removed removed.csv

    Args:
        source: text file with one text a line (plain or compressed), a table (TSV, CSV, JSON lines, Parquet), or - for
            lines of standard input.
        output: file for the rows that are kept, with all their columns: .txt, .tsv, .csv, .jsonl or .parquet; - is
            standard output.
        removed: file for the other rows, each with the number and the text of the row that is kept, and their cosine.
        groups: file for the rows of groups of two or more, the largest group first.
        model: model folder, output of train, hub name, or default.
        threshold: lowest cosine of near-duplicates, from -1 to 1, or calibrated for that of the model's calibration
            [0.9].
        min_precision: instead of a threshold, the one from the calibration, or from --pairs, with the highest recall at
            this precision, such as 0.95.
        pairs: a few labelled pairs, 1 for the same and 0 for not, on which the threshold of best F1 is chosen.
        by: representative keeps a text unless it is close to one that is kept; linked keeps one text of each connected
            group of pairs, so that the ends of a chain need not be close.
        keep: which text of a group is kept: the first, the longest, or (central) the one that is close to most rows.
        search: compare all pairs (exact), or each text with its near ones only (approximate); auto is approximate above
            50000 different texts.
        work: folder that caches vectors and neighbours, for other thresholds of the same texts.
        chunk: split texts longer than the model's maximum length into windows, and take the mean of their vectors, or
            the max of each dimension [the rest is ignored, and texts that differ there are not the same].
        json: print the counts as a JSON object; the rows go to files.
    """
    import samesense
    from samesense.data.texts import read_usable
    from samesense.execution.unread import name_rows
    from samesense.inference.names import place_of
    from samesense.inference.tables import Table, behind, format_of, rows_of, write_tables

    if json and output == "-":
        raise ConfigError(
            "With `json` standard output has the counts; name a file for the rows that are kept: `output`."
        )
    outputs = [(name, format_of(name, source)) for name in (output, removed, groups) if name is not None]
    check_outputs([name for name, _ in outputs], [source, place_of(model), pairs])
    read = read_usable(source, columns, drop_bad_rows=drop_bad_rows)
    name_rows(read.texts, read.indices)
    deduplicated = samesense.dedup(
        read.texts,
        model=model,
        threshold=threshold,
        min_precision=min_precision,
        pairs=pairs,
        by=by,
        keep=keep,
        search=search,
        work=work,
        chunk=chunk,
        precision=precision,
    )
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


def check_outputs(names: list[str], inputs: Sequence[str | None]) -> None:
    """Raise OutputError for a file that could not be written, ConfigError if two outputs are the same file.

    ``inputs`` must not be overwritten; ``None`` stands for an input that was not given.
    """
    from samesense.places import check_place

    if len({name if name == "-" else str(Path(name).expanduser().resolve()) for name in names}) < len(names):
        raise ConfigError(f"Each output is a file of its own; received {', '.join(names)}.")
    for name in names:
        if name != "-":
            check_place(name, [path for path in inputs if path is not None])


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
    member_cells = {row: cells for row, cells in enumerate(rows) if row in members}
    for number, group in enumerate(groups, 1):
        for row in group.rows:
            new_cells = (number, read.indices[row] + 1, row == group.kept, round(float(deduplicated.scores[row]), 6))
            yield {**member_cells[row], **dict(zip(added_columns, new_cells, strict=True))}
