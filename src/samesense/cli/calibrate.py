"""``samesense calibrate``: what do the scores of a model mean?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from samesense.cli.output import (
    DEFAULT_FORMAT,
    DEFAULT_PAIRS,
    Json,
    Output,
    PairFlags,
    PrecisionFlag,
    TableFlags,
    as_flags,
    put,
    put_json,
    reads_tables,
)


@reads_tables
def calibrate(
    model: str,
    /,
    *,
    data: str | None = None,
    output: Output | None = None,
    figure: Path | None = None,
    map_: Annotated[Literal["auto", "isotonic", "logistic"], Parameter(name="--map")] = "auto",
    yes: float | None = None,
    decide: Literal["accuracy", "f1"] = "accuracy",
    min_precision: float | None = None,
    min_recall: float | None = None,
    folds: int = 5,
    seed: int = 0,
    pair_options: PairFlags = DEFAULT_PAIRS,
    reading: TableFlags = DEFAULT_FORMAT,
    precision: PrecisionFlag = "float32",
    json: Json = False,
) -> None:
    """Calibrate a model's scores on labelled pairs: to a value on the labels' scale, a probability, or yes and no.

    samesense calibrate runs/first --figure calibration.png

    Args:
        model: model folder, output of train, hub name, default, or origin:FOLDER; also a cross-encoder.
        data: labelled pairs that the model was not trained on; by default those that its run held out or scored out of
            fold, with the stored scores.
        output: file for the calibration; by default calibration.json in the model's folder.
        figure: file for a figure of reliability, map and scores; ends in .png or .svg.
        map_: isotonic follows the data, logistic is a smooth curve; auto is logistic for yes/no labels, else isotonic.
        yes: lowest label of a positive pair; by default 1 for yes/no labels, and none for graded ones.
        decide: threshold for yes and no, the one of best accuracy or of best F1; both are stored.
        min_precision: instead, the threshold of highest recall at this precision on new pairs, such as 0.95; refused
            where the pairs do not show it with 95 % confidence.
        min_recall: instead, the threshold of highest precision at this recall on new pairs, such as 0.9; refused
            likewise.
        folds: folds of the cross-validation that estimates the errors.
        seed: seed of the split into folds.
        precision: arithmetic; float32 keeps the figures comparable between machines.
        json: print one JSON object an error.
    """
    import samesense

    calibrated = samesense.calibrate(
        model,
        data,
        output=output,
        figure=figure,
        map=map_,
        yes=yes,
        decide=decide,
        min_precision=min_precision,
        min_recall=min_recall,
        folds=folds,
        seed=seed,
        **vars(pair_options),
        precision=precision,
    )
    if json:
        put_json(result.to_dict() for result in calibrated.results)
    else:
        put(as_flags(str(calibrated)))
