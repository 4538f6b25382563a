"""``samesense dedup``: near-duplicates among the rows of a file, and the file without them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from samesense.cli.output import (
    BY_THE_RULES,
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
    from samesense.inference.duplicates.dedup import Deduplicated
    from samesense.inference.stream import Usable
    from samesense.inference.tables import Cells


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
    reading: TableFlags = BY_THE_RULES,
    drop_bad_rows: DropTexts = False,
    precision: PrecisionFlag = "auto",
    json: Json = False,
) -> None:
    """Find rows whose texts say the same, and keep one of them.

    samesense dedup questions.csv --output kept.csv --removed removed.csv

    Args:
        source: text file with one text a line (plain or compressed), a table (TSV, CSV, JSON lines, Parquet), or - for
            lines of standard input.
        output: file for the rows that are kept, with all their columns: .txt, .tsv, .csv, .jsonl or .parquet; - is
            standard output.
        removed: file for the other rows, each with the number and the text of the row that is kept, and their cosine.
        groups: file for the rows of groups of two or more, the largest group first.
        model: model folder, output of train, hub name, or default.
        threshold: cosine from which on two texts count as the same, from -1 to 1, or calibrated for that of the
            model's calibration [0.9].
        min_precision: in its place the threshold of the calibration, or on --pairs, that finds most at this precision,
            such as 0.95.
        pairs: a few labelled pairs, 1 for the same and 0 for not, from which the threshold is taken: that of best F1.
        by: representative keeps a text unless it is close to one that is kept; linked keeps one of all texts that are
            linked by pairs, so that ends of a chain need not be close.
        keep: which text goes first: the first, the longest, or (central) the one that is close to most rows.
        search: compare all pairs (exact), or each text with near ones alone (approximate); auto does the latter above
            50000 different texts.
        work: folder that keeps vectors and neighbours, for other thresholds of the same texts.
        chunk: cut texts that are longer than what the model reads into windows, and take the mean of their vectors, or
            the max of each dimension [the rest is left out, and texts that differ there are not the same].
        json: print what came out as a JSON object; the rows go to files.
    """
    import samesense
    from samesense.execution.unread import name_rows
    from samesense.inference.names import place_of
    from samesense.inference.stream import read_usable
    from samesense.inference.tables import Table, behind, format_of, rows_of, write_tables

    if json and output == "-":
        raise ConfigError(
            "With `json` standard output has the counts; name a file for the rows that are kept: `output`."
        )
    outputs = [(name, format_of(name, source)) for name in (output, removed, groups) if name is not None]
    check_outputs([name for name, _ in outputs], [source, place_of(model), pairs])
    read = read_usable(source, columns, drop_bad_rows=drop_bad_rows)
    name_rows(read.texts, read.places)
    found = samesense.dedup(
        read.texts, model=model, threshold=threshold, min_precision=min_precision, pairs=pairs, by=by, keep=keep,
        search=search, work=work, chunk=chunk, precision=precision,
    )  # fmt: skip
    contents = [(_kept, ()), *([(_removed, REMOVED)] if removed is not None else [])]
    contents += [(_groups, GROUPED)] if groups is not None else []
    tables = []
    for (name, form), (content, more) in zip(outputs, contents, strict=True):
        further = list(behind(read.columns, more).values())
        rows = content(rows_of(source, read, form), read, found, further)
        tables.append(Table(rows, name, form, [*read.columns, *further]))
    write_tables(*tables, source=source)
    if json:
        put_json([found.to_dict()])
    logger.info(str(found))


def check_outputs(names: list[str], inputs: Sequence[str | None]) -> None:
    """Raise OutputError for a file that could not be written, ConfigError if two outputs are one.

    ``inputs`` are not written over; ``None`` is one that was not given.
    """
    from samesense.places import check_place

    if len({name if name == "-" else str(Path(name).expanduser().resolve()) for name in names}) < len(names):
        raise ConfigError(f"Each output is a file of its own; received {', '.join(names)}.")
    for name in names:
        if name != "-":
            check_place(name, [given for given in inputs if given is not None])


def _kept(rows: Iterator[Cells], _: Usable, found: Deduplicated, further: Sequence[str]) -> Iterator[Cells]:
    for row, (cells, kept) in enumerate(zip(rows, found.kept_by.tolist(), strict=False)):
        if kept == row:
            yield cells


REMOVED = ("row", "kept_row", "kept_text", "cosine")
GROUPED = ("group", "row", "kept", "cosine")
"""Columns beside those of the source."""


def _removed(rows: Iterator[Cells], read: Usable, found: Deduplicated, further: Sequence[str]) -> Iterator[Cells]:
    for row, (cells, kept) in enumerate(zip(rows, found.kept_by.tolist(), strict=False)):
        if kept != row:
            score = round(float(found.scores[row]), 6)
            ours = read.places[row] + 1, read.places[kept] + 1, read.texts[kept], score
            yield {**cells, **dict(zip(further, ours, strict=True))}


def _groups(rows: Iterator[Cells], read: Usable, found: Deduplicated, further: Sequence[str]) -> Iterator[Cells]:
    groups = found.groups
    members = {row for group in groups for row in group.rows}
    cells = {row: its for row, its in enumerate(rows) if row in members}
    for number, group in enumerate(groups, 1):
        for row in group.rows:
            ours = number, read.places[row] + 1, row == group.kept, round(float(found.scores[row]), 6)
            yield {**cells[row], **dict(zip(further, ours, strict=True))}
