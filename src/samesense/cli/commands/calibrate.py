"""``samesense calibrate``: what do the scores of a model mean?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from samesense.api import evaluation
from samesense.cli.command import command_of
from samesense.cli.output import Json, as_flags, put, put_json, shown_if_unwritten

if TYPE_CHECKING:
    from samesense.inference.calibration.fit import Calibrated


@command_of(evaluation.calibrate)
def calibrate(model: str, /, *, json: Json = False, **options: Any) -> None:
    """samesense calibrate runs/first --figure calibration.png

    Args:
        json: print one JSON object per error.
    """

    def show(calibrated: Calibrated) -> None:
        if json:
            put_json(result.to_dict() for result in calibrated.results)
        else:
            put(as_flags(str(calibrated)))

    with shown_if_unwritten(show):
        calibrated = evaluation.calibrate(model, **options)
    show(calibrated)
