"""``samesense match``: rows of two files with the same meaning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from samesense.api import duplicates
from samesense.cli.command import command_of
from samesense.cli.output import DropTexts, FileOrInput, FileOrOutput, Flag, Json, logger, put_json, refuse_mixed_output
from samesense.errors import ConfigError

if TYPE_CHECKING:
    from samesense.inference.duplicates.match import Matched
    from samesense.inference.tables import Cells


@command_of(duplicates.match)
def match(
    source: FileOrInput,
    target: FileOrInput,
    /,
    *,
    output: FileOrOutput = "-",
    unmatched: str | None = None,
    overwrite: Flag = False,
    drop_bad_rows: DropTexts = False,
    json: Json = False,
    **options: Any,
) -> None:
    """samesense match names.csv catalogue.csv --output pairs.csv

    Args:
        output: file for the matches, each with all columns of both rows, their numbers and the cosine: .tsv, .csv,
            .jsonl or .parquet; - is standard output, as TSV.
        unmatched: file for the rows of the first file that have no match.
        overwrite: replace existing files.
        json: print the counts as a JSON object; the rows go to files.
    """
    from samesense.data.conventions.named_columns import columns_named_by
    from samesense.data.texts import is_table, read_usable
    from samesense.execution.unread import name_rows
    from samesense.inference.names import place_of
    from samesense.inference.tables import Table, behind, format_of, rows_of, write_tables
    from samesense.places import writing_outputs

    form = format_of(output, ".tsv", table=True)
    refuse_mixed_output(output, "the matches", json=json)
    # It can be read once.
    if source == target == "-":
        raise ConfigError("Standard input can be one of the two files; received it twice. Name a file.")
    outputs = [output]
    unmatched_form = None
    if unmatched is not None:
        outputs.append(unmatched)
        unmatched_form = format_of(unmatched, ".tsv" if is_table(source) else ".txt")
    inputs = [source, target, place_of(options["model"]), options["pairs"]]
    with writing_outputs(outputs, inputs, overwrite=overwrite):
        sources = read_usable(source, options.pop("columns"), drop_bad_rows=drop_bad_rows)
        name_rows(sources.texts, sources.indices)
        with columns_named_by("target_columns"):
            targets = read_usable(target, options.pop("target_columns"), drop_bad_rows=drop_bad_rows)
        matched = duplicates.match(sources.texts, targets.texts, **options)
        # columns of the second file and of the match are renamed where a name is taken
        target_names = behind(sources.names, targets.names)
        added_columns = behind([*sources.names, *target_names.values()], MATCHED)
        names = [*sources.names, *target_names.values(), *added_columns.values()]
        target_rows = (
            {target_names[name]: cell for name, cell in cells.items()} for cells in rows_of(target, targets, form)
        )
        row_numbers = sources.indices, targets.indices
        matches = _pairs(
            rows_of(source, sources, form), target_rows, matched, row_numbers, list(added_columns.values())
        )
        tables = [Table(matches, output, form, names)]
        if unmatched is not None and unmatched_form is not None:
            unmatched_rows = set(matched.unmatched.tolist())
            rows = (
                cells for row, cells in enumerate(rows_of(source, sources, unmatched_form)) if row in unmatched_rows
            )
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
    row_numbers: tuple[Sequence[int], Sequence[int]],
    added_columns: Sequence[str],
) -> Iterator[Cells]:
    matched_rows = {pair.match for pair in matched.pairs}
    # Only rows with a match are kept in memory; those of the first file stream.
    targets = {row: cells for row, cells in enumerate(target_rows) if row in matched_rows}
    matches = iter(matched.pairs)
    pair = next(matches, None)
    for row, cells in enumerate(rows):
        while pair is not None and pair.row == row:
            # Rows are counted from 1 for people, as in an editor.
            numbers = row_numbers[0][row] + 1, row_numbers[1][pair.match] + 1, round(pair.score, 6)
            yield {**cells, **targets[pair.match], **dict(zip(added_columns, numbers, strict=True))}
            pair = next(matches, None)
