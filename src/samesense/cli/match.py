"""``samesense match``: rows of two files with the same meaning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from samesense.cli.dedup import check_outputs
from samesense.cli.output import (
    DEFAULT_FORMAT,
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
    reading: TableFlags = DEFAULT_FORMAT,
    target_columns: Annotated[str | None, Parameter(help="the same of the second file")] = None,
    drop_bad_rows: DropTexts = False,
    precision: PrecisionFlag = "auto",
    json: Json = False,
) -> None:
    """Find for each row of one file the row of another with the same meaning.

    samesense match names.csv catalogue.csv --output pairs.csv

    Args:
        source: text file with one text a line (plain or compressed), a table (TSV, CSV, JSON lines, Parquet), or - for
            lines of standard input.
        target: likewise, the file to search for matches.
        output: file for the matches, each with all columns of both rows, their numbers and the cosine: .tsv, .csv,
            .jsonl or .parquet; - is standard output, as TSV.
        unmatched: file for the rows of the first file that have no match.
        model: model folder, output of train, hub name, or default.
        threshold: lowest cosine of a match, from -1 to 1, or calibrated for that of the model's calibration [0.9].
        min_precision: instead of a threshold, the one from the calibration, or from --pairs, with the highest recall at
            this precision, such as 0.95.
        pairs: a few labelled pairs, 1 for the same and 0 for not, on which the threshold of best F1 is chosen.
        top: most matches of a row.
        one_to_one: match no row of the second file twice: the closest two rows first, then the closest of the rest.
        search: compare all pairs (exact), or each text with its near ones only (approximate); auto is approximate above
            50000 different texts in the second file.
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

    form = ".tsv" if output == "-" else format_of(output, source)
    if form == ".txt":
        raise ConfigError(f"Matches are a table, .tsv, .csv, .jsonl or .parquet; received `output` {output!r}.")
    if json and output == "-":
        raise ConfigError("With `json` standard output has the counts; name a file for the matches: `output`.")
    if source == target == "-":
        raise ConfigError("Standard input can be one of the two files; received it twice. Name a file.")
    unmatched_form = None if unmatched is None else format_of(unmatched, source)
    outputs = [output] if unmatched is None else [output, unmatched]
    check_outputs(outputs, [source, target, place_of(model), pairs])
    sources = read_usable(source, columns, drop_bad_rows=drop_bad_rows)
    name_rows(sources.texts, sources.indices)
    targets = read_usable(target, target_columns, drop_bad_rows=drop_bad_rows)
    matched = samesense.match(
        sources.texts,
        targets.texts,
        model=model,
        threshold=threshold,
        min_precision=min_precision,
        pairs=pairs,
        top=top,
        one_to_one=one_to_one,
        search=search,
        work=work,
        chunk=chunk,
        precision=precision,
    )
    # columns of the second file and of the match are renamed where a name is taken
    target_names = behind(sources.names, targets.names)
    added_columns = behind([*sources.names, *target_names.values()], MATCHED)
    names = [*sources.names, *target_names.values(), *added_columns.values()]
    target_rows = (
        {target_names[name]: cell for name, cell in cells.items()} for cells in rows_of(target, targets, form)
    )
    row_numbers = sources.indices, targets.indices
    matches = _pairs(rows_of(source, sources, form), target_rows, matched, row_numbers, list(added_columns.values()))
    tables = [Table(matches, output, form, names)]
    if unmatched is not None and unmatched_form is not None:
        unmatched_rows = set(matched.unmatched.tolist())
        rows = (cells for row, cells in enumerate(rows_of(source, sources, unmatched_form)) if row in unmatched_rows)
        tables.append(Table(rows, unmatched, unmatched_form, sources.names))
    write_tables(*tables, source=source)
    if json:
        put_json([matched.to_dict()])
    logger.info(str(matched))


MATCHED = ("row", "match_row", "cosine")
"""New columns, after those of both sources."""


def _pairs(
    rows: Iterator[Cells],
    target_rows: Iterator[Cells],
    matched: Matched,
    row_numbers: tuple[list[int], list[int]],
    added_columns: Sequence[str],
) -> Iterator[Cells]:
    matched_rows = {pair.match for pair in matched.pairs}
    targets = {row: cells for row, cells in enumerate(target_rows) if row in matched_rows}
    matches = iter(matched.pairs)
    pair = next(matches, None)
    for row, cells in enumerate(rows):
        while pair is not None and pair.row == row:
            numbers = row_numbers[0][row] + 1, row_numbers[1][pair.match] + 1, round(pair.score, 6)
            yield {**cells, **targets[pair.match], **dict(zip(added_columns, numbers, strict=True))}
            pair = next(matches, None)
