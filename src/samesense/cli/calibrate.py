"""``samesense calibrate``: what do the scores of a model mean?"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from samesense.cli.output import (
    Columns,
    DropBadRows,
    LabelOrder,
    LabelRange,
    PrecisionFlag,
    put,
    put_json,
)

if TYPE_CHECKING:
    from samesense.inference.calibration.fit import Calibrated

logger = logging.getLogger(__name__)


def calibrate(
    model: str,
    /,
    *,
    data: str,
    output: Annotated[Path | None, Parameter(name=["--output", "-o"])] = None,
    figure: Path | None = None,
    shape: Annotated[Literal["auto", "isotonic", "logistic"], Parameter(name="--map")] = "auto",
    yes: float | None = None,
    decide: Literal["accuracy", "f1"] = "accuracy",
    folds: int = 5,
    seed: int = 0,
    columns: Columns = None,
    label_order: LabelOrder = None,
    label_range: LabelRange = None,
    drop_bad_rows: DropBadRows = False,
    precision: PrecisionFlag = "float32",
    json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Learn on labelled pairs what a model's scores mean: a value on the labels' scale, a probability, yes or no.

    samesense calibrate runs/first --data dev.tsv --figure calibration.png

    Args:
        model: model folder, output of train, hub name, default, or origin:FOLDER; also a cross-encoder.
        data: labelled pairs that the model was not trained on.
        output: file for the calibration; by default calibration.json in the model's folder.
        figure: file for a figure of reliability, map and scores; ends in .png or .svg.
        shape: isotonic follows the data, logistic is a smooth curve; auto is logistic for yes/no labels, else isotonic.
        yes: label from which on a pair counts as a yes; by default 1 for yes/no labels, and none for graded ones.
        decide: threshold for yes and no, the one of best accuracy or of best F1; both are kept.
        folds: of the cross-validation, which gives the errors.
        seed: which decides the folds.
        columns: text and label columns by name, as in: question1,question2,is_duplicate
        label_order: names of the labels 0, 1, 2 of NLI data, as in: entailment,neutral,contradiction
        label_range: lowest and highest label of the scale, as in: 0 5
        drop_bad_rows: leave out rows that break a rule, and say how many.
        precision: arithmetic; float32 keeps the figures comparable between machines.
        json: print one JSON object an error.
    """
    from samesense.data import read_pairs

    pairs = read_pairs(
        data, columns=columns, label_order=label_order, label_range=label_range, drop_bad_rows=drop_bad_rows
    )
    if pairs.dropped or pairs.dropped_unlabelled:
        logger.info(f"{pairs.name}: left out {pairs.dropped} bad and {pairs.dropped_unlabelled} unlabelled rows")
    from samesense.files import check_place
    from samesense.inference.calibration.fit import CalibrationSettings, check_labels
    from samesense.inference.calibration.fit import calibrate as run
    from samesense.inference.calibration.storage import home_of, store
    from samesense.inference.models.load import load
    from samesense.reports.figures import check_figure

    wanted = CalibrationSettings(shape=shape, yes=yes, decide=decide, folds=folds, seed=seed)
    check_labels(pairs, wanted)
    home = home_of(model)
    place = home.place(output)
    check_place(place)
    if figure is not None:
        check_figure(figure)
    made = run(load(model, precision=precision), pairs, home.fingerprint(), wanted)
    store(made.calibration, place)
    if figure is not None:
        _draw(made, figure)
    if json:
        put_json(result.to_dict() for result in made.results)
    else:
        put(_table(made))
    logger.info(f"written: {place}{'' if figure is None else f', {figure}'}")


def _table(made: Calibrated) -> str:
    """Return what was fitted and how wrong it is, as lines of text."""
    fitted, errors = made.calibration, made.calibration.errors
    low, high = fitted.scale
    lines = [
        f"{fitted.n} pairs of {fitted.data}, {fitted.map.kind} map to {low:g}-{high:g}",
        f"{'error':<9}{'score as it is':>15}{'calibrated, cross-validated':>29}",
    ]
    for name in ("ece", "mae", "brier"):
        if name in errors:
            before = f"{errors[f'{name}_before']:.4f}" if f"{name}_before" in errors else "undefined"
            lines.append(f"{name:<9}{before:>15}{errors[name]:>29.4f}")
    if fitted.yes is None:
        lines.append("no threshold for yes and no: say from which label on a pair counts, with --yes")
        return "\n".join(lines)
    for target in ("accuracy", "f1"):
        cut = fitted.thresholds.get(target)
        shown = "undefined: it is best to call all the same" if cut is None else f"{cut:.4f}"
        used = ", used" if target == fitted.decide else ""
        lines.append(f"threshold for {target}{used}: {shown}; cross-validated {target} {100 * errors[target]:.1f} %")
    return "\n".join(lines)


def _draw(made: Calibrated, path: Path) -> None:
    import numpy as np

    from samesense.reports.figures import Fitted, calibration, save_plot

    fitted, scores = made.calibration, made.scores
    grid = np.union1d(np.linspace(scores.min(), scores.max(), 400), scores)
    plot = calibration(
        Fitted(
            scores=scores,
            labels=made.labels,
            predicted={"calibrated, cross-validated": made.held_out}
            | ({} if made.before is None else {"score as it is": made.before}),
            scale=fitted.scale,
            map=(grid, fitted.apply(grid)),
            thresholds={str(target): cut for target, cut in fitted.thresholds.items()},
            yes=fitted.yes,
            data=fitted.data,
        ),
        name=path.stem,
    )
    save_plot(plot, path)
