"""``samesense calibrate``: what do the scores of a model mean?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from samesense.cli.output import (
    AS_THEY_ARE,
    BY_THE_RULES,
    Json,
    Output,
    PrecisionFlag,
    ReadFlags,
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
    how: ReadFlags = AS_THEY_ARE,
    reading: TableFlags = BY_THE_RULES,
    precision: PrecisionFlag = "float32",
    json: Json = False,
) -> None:
    """Learn on labelled pairs what a model's scores mean: a value on the labels' scale, a probability, yes or no.

    samesense calibrate runs/first --figure calibration.png

    Args:
        model: model folder, output of train, hub name, default, or origin:FOLDER; also a cross-encoder.
        data: labelled pairs that the model was not trained on; by default those that its run held out or scored out of
            fold, with the scores that it has kept.
        output: file for the calibration; by default calibration.json in the model's folder.
        figure: file for a figure of reliability, map and scores; ends in .png or .svg.
        map_: isotonic follows the data, logistic is a smooth curve; auto is logistic for yes/no labels, else isotonic.
        yes: label from which on a pair counts as a yes; by default 1 for yes/no labels, and none for graded ones.
        decide: threshold for yes and no, the one of best accuracy or of best F1; both are kept.
        min_precision: in its place the threshold that finds most at this precision on new pairs, such as 0.95; refused
            where the pairs do not show it with 95 % confidence.
        min_recall: in its place the threshold of highest precision that finds this share of the yes among new pairs,
            such as 0.9; refused like it.
        folds: of the cross-validation, which gives the errors.
        seed: which decides the folds.
        precision: arithmetic; float32 keeps the figures comparable between machines.
        json: print one JSON object an error.
    """
    import samesense

    made = samesense.calibrate(
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
        **vars(how),
        precision=precision,
    )
    if json:
        put_json(result.to_dict() for result in made.results)
    else:
        put(as_flags(str(made)))
