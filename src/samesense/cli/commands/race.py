"""``samesense race``: finds the best method, start model and settings within a budget of time."""

from __future__ import annotations

from typing import Any

from samesense.api import race as api
from samesense.cli.command import command_of
from samesense.cli.output import RERUN, Json, Output, Several, on_interrupt, put_result


@command_of(api.race)
def race(data: Several, /, *, output: Output, json: Json = False, **options: Any) -> None:
    """samesense race train.tsv --budget 30m --output races/mine

    Args:
        json: print leaderboard, recommended models and figures on test as one JSON object.
    """
    from samesense.recipes.race.state import FILE

    with on_interrupt(RERUN, output / FILE):
        result = api.race(data, output=output, **options)
    put_result(result, json=json)
