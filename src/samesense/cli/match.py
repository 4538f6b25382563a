"""``samesense match``: rows of two files that say the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from samesense.cli.dedup import check_outputs
from samesense.cli.output import (
    BY_THE_RULES,
    DropTexts,
    Flag,
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
    from samesense.inference.duplicates.match import Matched
    from samesense.inference.tables import Cells


@reads_tables
def match(
    source: Annotated[str, Parameter(allow_leading_hyphen=True)],
    target: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    output: Annotated[str, Parameter(name=["--output", "-o"], allow_leading_hyphen=True)] = "-",
    unmatched: str | None = None,
    model: str = "default",
    threshold: Annotated[Threshold | None, Parameter(allow_leading_hyphen=True)] = None,
    min_precision: float | None = None,
    pairs: str | None = None,
    top: int = 1,
    one_to_one: Flag = False,
    search: Literal["auto", "exact", "approximate"] = "auto",
    work: Path | None = None,
    chunk: Chunk | None = None,
    columns: TextColumns = None,
    reading: TableFlags = BY_THE_RULES,
    target_columns: Annotated[str | None, Parameter(help="the same of the second file")] = None,
    drop_bad_rows: DropTexts = False,
    precision: PrecisionFlag = "auto",
    json: Json = False,
) -> None:
    """Find for each row of one file the row of another whose text says the same.

    samesense match names.csv catalogue.csv --output pairs.csv

    Args:
        source: text file with one text a line (plain or compressed), a table (TSV, CSV, JSON lines, Parquet), or - for
            lines of standard input.
        target: the like, in which matches are looked for.
        output: file for the matches, each with all columns of both rows, their numbers and the cosine: .tsv, .csv,
            .jsonl or .parquet; - is standard output, as TSV.
        unmatched: file for the rows of the first file that have no match.
        model: model folder, output of train, hub name, or default.
        threshold: lowest cosine of a match, from -1 to 1, or calibrated for that of the model's calibration [0.9].
        min_precision: in its place the threshold of the calibration, or on --pairs, that finds most at this precision,
            such as 0.95.
        pairs: a few labelled pairs, 1 for the same and 0 for not, from which the threshold is taken: that of best F1.
        top: matches of a row at most.
        one_to_one: match no row of the second file twice: the closest two rows first, then the closest of the rest.
        search: compare all pairs (exact), or each text with near ones alone (approximate); auto does the latter above
            50000 different texts in the second file.
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

    form = ".tsv" if output == "-" else format_of(output, source)
    if form == ".txt":
        raise ConfigError(f"Matches are a table, .tsv, .csv, .jsonl or .parquet; received `output` {output!r}.")
    if json and output == "-":
        raise ConfigError("With `json` standard output has the counts; name a file for the matches: `output`.")
    if source == target == "-":
        raise ConfigError("Standard input can be one of the two files; received it twice. Name a file.")
    rest = None if unmatched is None else format_of(unmatched, source)
    outputs = [output] if unmatched is None else [output, unmatched]
    check_outputs(outputs, [source, target, place_of(model), pairs])
    ours = read_usable(source, columns, drop_bad_rows=drop_bad_rows)
    name_rows(ours.texts, ours.places)
    theirs = read_usable(target, target_columns, drop_bad_rows=drop_bad_rows)
    found = samesense.match(
        ours.texts, theirs.texts, model=model, threshold=threshold, min_precision=min_precision, pairs=pairs, top=top,
        one_to_one=one_to_one, search=search, work=work, chunk=chunk, precision=precision,
    )  # fmt: skip
    their_names = behind(ours.columns, theirs.columns)
    further = behind([*ours.columns, *their_names.values()], MATCHED)
    names = [*ours.columns, *their_names.values(), *further.values()]
    others = ({their_names[name]: cell for name, cell in cells.items()} for cells in rows_of(target, theirs, form))
    places = ours.places, theirs.places
    matches = _pairs(rows_of(source, ours, form), others, found, places, list(further.values()))
    tables = [Table(matches, output, form, names)]
    if unmatched is not None and rest is not None:
        left = set(found.unmatched.tolist())
        rows = (cells for row, cells in enumerate(rows_of(source, ours, rest)) if row in left)
        tables.append(Table(rows, unmatched, rest, ours.columns))
    write_tables(*tables, source=source)
    if json:
        put_json([found.to_dict()])
    logger.info(str(found))


MATCHED = ("row", "match_row", "cosine")
"""Columns beside those of both sources."""


def _pairs(
    rows: Iterator[Cells],
    others: Iterator[Cells],
    found: Matched,
    places: tuple[list[int], list[int]],
    further: Sequence[str],
) -> Iterator[Cells]:
    wanted = {pair.match for pair in found.pairs}
    theirs = {row: cells for row, cells in enumerate(others) if row in wanted}
    matches = iter(found.pairs)
    pair = next(matches, None)
    for row, cells in enumerate(rows):
        while pair is not None and pair.row == row:
            numbers = places[0][row] + 1, places[1][pair.match] + 1, round(pair.score, 6)
            yield {**cells, **theirs[pair.match], **dict(zip(further, numbers, strict=True))}
            pair = next(matches, None)
