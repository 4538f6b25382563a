"""``samesense calibrate``: what do the scores of a model mean?"""

from __future__ import annotations

from typing import Any

from samesense.api import evaluation
from samesense.cli.command import command_of
from samesense.cli.output import Json, as_flags, put, put_json


@command_of(evaluation.calibrate)
def calibrate(model: str, /, *, json: Json = False, **options: Any) -> None:
    """samesense calibrate runs/first --figure calibration.png

    Args:
        json: print one JSON object per error.
    """
    calibrated = evaluation.calibrate(model, **options)
    if json:
        put_json(result.to_dict() for result in calibrated.results)
    else:
        put(as_flags(str(calibrated)))
