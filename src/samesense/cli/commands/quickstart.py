"""``samesense quickstart``: training, test, threshold and report in one command, on the sample data of the package."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np

from samesense.cli.output import RERUN, Flag, logger, put_painted

if TYPE_CHECKING:
    from samesense.inference.calibration.calibration import Calibration
    from samesense.reports.report import Report
    from samesense.reports.run_verdict import Verdict
    from samesense.types import Evidence

SHOWN = 3
"""Test pairs to show among those on which the two models differ."""


def quickstart(output: Path = Path("runs/quickstart"), /, *, model: str = "default", overwrite: Flag = False) -> None:
    """Train on the embedded sample of a support desk's questions, test the gain, and choose a threshold: two minutes.

    samesense quickstart runs/quickstart

    Args:
        output: folder of the run.
        model: model folder, hub name, or default: all-MiniLM-L6-v2 from its package.
        overwrite: replace an earlier run in the output folder.
    """
    import samesense
    from samesense.cli.commands.train import Flags, train
    from samesense.data import read_pairs, sample_path
    from samesense.inference.calibration.fit import calibrate
    from samesense.recipes.run.earlier_run import is_unfinished
    from samesense.reports.figures.plot import need_matplotlib
    from samesense.reports.run_verdict import verdict_from
    from samesense.training import manifest
    from samesense.urls import Name

    # At once, and not after two minutes of training.
    need_matplotlib()
    files = {split: str(sample_path(split)) for split in ("train", "dev", "test")}
    logger.info("1 of 4: what scores of the untrained model mean, by the dev pairs")
    dev = read_pairs(files["dev"])
    # In float32, so that its scores are the same on every machine.
    start = calibrate(samesense.load(model, precision="float32"), dev, model).calibration
    logger.info("2 of 4: train on pairs of questions, labelled 1 if one answer serves both, else 0")
    try:
        train(
            [Name(files["train"])],
            output=output,
            dev=files["dev"],
            test=files["test"],
            settings=Flags(model=model),
            resume=not overwrite and is_unfinished(output),
            overwrite=overwrite,
        )
    except KeyboardInterrupt as stop:
        # This command has no flag to resume.
        raise KeyboardInterrupt(*([RERUN] if stop.args else [])) from None
    logger.info("3 of 4: choose by the dev pairs from which score on two questions are called the same")
    trained = samesense.calibrate(str(output), dev).calibration
    logger.info("4 of 4: compare the trained model with its start on the test pairs")
    report = samesense.compare({"start": model, "trained": str(output)}, files["test"], speed=False)
    verdict = verdict_from(manifest.read(output)["verdict"])
    for line in ["", *summary(verdict, report, start, trained), *_next_steps(output)]:
        put_painted(line)


def summary(verdict: Verdict, report: Report, start: Calibration, trained: Calibration) -> list[str]:
    """Return the summary: whether training helped, the threshold, and the test pairs on which the models differ."""
    scored = {evidence.model: evidence for evidence in report.evidence if evidence.metric == "spearman"}
    # Each model by the threshold of its own calibration: their scores mean different things.
    both = [(scored["start"], start), (scored["trained"], trained)]
    return [
        *verdict.lines(),
        "",
        f"Threshold: questions that score {trained.threshold():.2f} or more are called the same. On the test pairs:",
        *(f"  {evidence.model:<8}{_precision_recall(evidence, fitted)}" for evidence, fitted in both),
        "",
        *_differing(*both),
    ]


def _precision_recall(evidence: Evidence, fitted: Calibration) -> str:
    from samesense.metrics.classification import precision_at, recall_at

    right = np.asarray(evidence.labels, dtype=np.float64)
    precision, recall = (
        100 * measure(evidence.values, right, fitted.threshold()) for measure in (precision_at, recall_at)
    )
    return f"of the pairs it calls the same, {precision:.0f} % are (precision); it finds {recall:.0f} % (recall)"


def _differing(start: tuple[Evidence, Calibration], trained: tuple[Evidence, Calibration]) -> list[str]:
    """Return the number of pairs on which the decisions of the models differ, and the largest changes among them."""
    start_scores, start_calibration = start
    trained_scores, trained_calibration = trained
    before = start_calibration.says_yes(start_scores.values)
    after = trained_calibration.says_yes(trained_scores.values)
    right = np.asarray(start_scores.labels) == 1
    # Pairs on which the answer changed say more than a figure.
    rows = np.flatnonzero(before != after)
    if not len(rows):
        return ["They agree on every test pair."]
    values_before = start_calibration.apply(start_scores.values)
    values_after = trained_calibration.apply(trained_scores.values)
    change = np.abs(values_after - values_before)[rows]
    better = int((after == right)[rows].sum())
    lines = [f"They differ on {len(rows)} test pairs; the trained model is right on {better}. The largest changes:"]
    for row in rows[np.argsort(-change, kind="stable")][:SHOWN]:
        first, second = start_scores.examples[row]
        answers = f"start says {_called(before[row])}, trained {_called(after[row])}, right is {_called(right[row])}"
        lines += [f"  {first}", f"  {second}", f"    {answers}"]
    return lines


def _called(same: bool) -> str:
    if same:
        return "same"
    return "not the same"


def _next_steps(output: Path) -> list[str]:
    return [
        "",
        f"Report with figures, to open in a browser: {output / 'report.html'}",
        "With your own data:",
        "  samesense train pairs.tsv --test test.tsv --output runs/mine    # columns sentence1, sentence2, label",
        "  samesense calibrate runs/mine --data dev.tsv --min-precision 0.9",
        f"  samesense mine questions.txt --model {quote(str(output))} --threshold calibrated",
    ]
