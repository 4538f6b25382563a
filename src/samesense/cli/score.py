"""``samesense score``: a table of pairs with the score of each beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from samesense.cli.output import (
    DEFAULT_FORMAT,
    Flag,
    Json,
    PrecisionFlag,
    TableFlags,
    Threshold,
    logger,
    put_json,
    reads_tables,
)
from samesense.errors import ConfigError


@reads_tables
def score(
    source: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    output: Annotated[str, Parameter(name=["--output", "-o"], allow_leading_hyphen=True)] = "-",
    model: str = "default",
    columns: Annotated[str | None, Parameter(help="the two columns that are compared, as in: left,right")] = None,
    threshold: Annotated[Threshold | None, Parameter(allow_leading_hyphen=True)] = None,
    min_precision: float | None = None,
    calibration: Path | None = None,
    prefix: str = "",
    decimal: Literal["point", "comma"] | None = None,
    excel: Flag = False,
    overwrite: Flag = False,
    reading: TableFlags = DEFAULT_FORMAT,
    precision: PrecisionFlag = "auto",
    json: Json = False,
) -> None:
    """Score the two texts of each row of a table, and write the same table with the score beside them.

    samesense score new.csv --model runs/mine --columns left,right --output scored.csv

    The new columns are score, and of a model that is calibrated probability (value where its labels were graded) and
    same. Rows without two texts stay, without a score.

    Args:
        source: table (TSV, CSV, JSON lines, Parquet; plain or compressed), or - for TSV on standard input.
        output: file for the table: .tsv, .csv, .jsonl or .parquet; in the format of the source each row stays as it is,
            followed by the new cells; - is standard output.
        model: model folder, output of train, hub name, or default; or any other model that evaluate takes.
        threshold: lowest score of two texts that are the same, or calibrated [that of the calibration, if any].
        min_precision: instead, the threshold of the calibration with the highest recall at this precision, such as
            0.95.
        calibration: file of the calibration; by default calibration.json in the model's folder, if it exists.
        prefix: prefix of the names of the new columns, for a table that has a score already.
        decimal: decimal mark of scores in .tsv and .csv [that of the table].
        excel: write .csv as Excel opens it: with a byte order mark, and semicolons where decimals have commas.
        overwrite: replace an existing file.
        json: print the counts as a JSON object; the table goes to a file.
    """
    import samesense

    if json and output == "-":
        raise ConfigError("With `json` standard output has the counts; name a file for the table: `output`.")
    result = samesense.score(
        source,
        model=model,
        output=output,
        columns=columns,
        threshold=threshold,
        min_precision=min_precision,
        calibration=calibration,
        prefix=prefix,
        decimal=decimal,
        excel=excel,
        overwrite=overwrite,
        precision=precision,
    )
    if json:
        put_json([result.to_dict()])
    logger.info(str(result))
