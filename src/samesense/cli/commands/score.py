"""``samesense score``: a table of pairs with the score of each beside it."""

from __future__ import annotations

from typing import Any

from samesense.api import score as api
from samesense.cli.command import command_of
from samesense.cli.output import FileOrInput, FileOrOutput, Json, logger, put_json, refuse_mixed_output


@command_of(api.score)
def score(source: FileOrInput, /, *, output: FileOrOutput = "-", json: Json = False, **options: Any) -> None:
    """samesense score new.csv --model runs/mine --columns left,right --output scored.csv

    Args:
        json: print the counts as a JSON object; the table goes to a file.
    """
    refuse_mixed_output(output, "the table", json=json)
    result = api.score(source, output=output, **options)
    if json:
        put_json([result.to_dict()])
    logger.info(str(result))
