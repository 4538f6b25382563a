"""``samesense mine``: the closest pairs of texts in a file."""

from __future__ import annotations

from typing import Any

from samesense.api import use
from samesense.cli.command import command_of
from samesense.cli.output import DropTexts, FileOrInput, Json, logger, put_json, put_row


@command_of(use.mine)
def mine(source: FileOrInput, /, *, drop_bad_rows: DropTexts = False, json: Json = False, **options: Any) -> None:
    """samesense mine texts.txt --top 20 --threshold 0.8

    Args:
        json: print JSON lines with the numbers of both lines or rows, both texts and the score.
    """
    from samesense.data.texts import read_usable
    from samesense.execution.unread import name_rows

    read = read_usable(source, options.pop("columns"), drop_bad_rows=drop_bad_rows)
    name_rows(read.texts, read.indices)
    texts = read.texts
    pairs = use.mine(texts, **options)
    for first, second, score in pairs:
        if json:
            rows = {"row1": read.indices[first] + 1, "row2": read.indices[second] + 1, "score": round(score, 6)}
            put_json([{**rows, "text1": texts[first], "text2": texts[second]}])
        else:
            put_row(f"{score:.4f}", texts[first], texts[second])
    logger.info(f"{len(pairs)} pairs of {len(texts)} texts")
