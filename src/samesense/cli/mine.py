"""``samesense mine``: the closest pairs of texts in a file."""

from __future__ import annotations

from typing import Annotated

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
    put_row,
    reads_tables,
)
from samesense.encoder.windows import Chunk


@reads_tables
def mine(
    source: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    model: str = "default",
    top: int = 100,
    threshold: Annotated[Threshold, Parameter(allow_leading_hyphen=True)] = 0.0,
    chunk: Chunk | None = None,
    columns: TextColumns = None,
    reading: TableFlags = DEFAULT_FORMAT,
    drop_bad_rows: DropTexts = False,
    precision: PrecisionFlag = "auto",
    json: Json = False,
) -> None:
    """Find the pairs of texts that are closest in meaning, each pair once.

    samesense mine texts.txt --top 20 --threshold 0.8

    Args:
        source: text file with one text a line (plain or compressed), a table (TSV, CSV, JSON lines, Parquet), or - for
            lines of standard input.
        model: model folder, output of train, hub name, or default.
        top: number of pairs to print.
        threshold: lowest cosine of a pair, from -1 to 1, or calibrated for that of the model's calibration.
        chunk: split texts longer than the model's maximum length into windows, and take the mean of their vectors, or
            the max of each dimension [the rest is ignored].
        json: print JSON lines with the numbers of both lines or rows, both texts and the score.
    """
    import samesense
    from samesense.data.texts import read_usable
    from samesense.execution.unread import name_rows

    read = read_usable(source, columns, drop_bad_rows=drop_bad_rows)
    name_rows(read.texts, read.indices)
    texts = read.texts
    pairs = samesense.mine(texts, model=model, top=top, threshold=threshold, chunk=chunk, precision=precision)
    for first, second, score in pairs:
        if json:
            rows = {"row1": read.indices[first] + 1, "row2": read.indices[second] + 1, "score": round(score, 6)}
            put_json([{**rows, "text1": texts[first], "text2": texts[second]}])
        else:
            put_row(f"{score:.4f}", texts[first], texts[second])
    logger.info(f"{len(pairs)} pairs of {len(texts)} texts")
