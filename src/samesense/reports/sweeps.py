"""What the runs of a sweep say together: steps to a level, differences, and curves over a setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from samesense.reports.figures.curves import Curve, learning_curves, sweep
from samesense.reports.figures.plot import Plot, Style
from samesense.reports.grid import ABSENT
from samesense.reports.illustrate import stem
from samesense.reports.significance import Comparison
from samesense.reports.store import Run, sweep_points
from samesense.reports.tables import TitledTable, markdown
from samesense.results import measure_of, one_line

Curves = Mapping[str, Mapping[int, Curve]]
"""Learning curves on one data set, by variant and seed."""


@dataclass(frozen=True, kw_only=True)
class StepsToScore:
    """How soon one variant reaches the best dev score of another."""

    variant: str  # the variant that is timed
    baseline: str  # the variant whose best dev score is the level
    level: float  # that score, the mean over seeds
    baseline_steps: tuple[float, ...]  # steps after which the baseline has it, one a seed
    # steps after which the variant has it, one a seed; None where it never does
    variant_steps: tuple[float | None, ...]

    @property
    def arrived(self) -> list[float]:
        """Steps of the seeds that arrive."""
        return [steps for steps in self.variant_steps if steps is not None]

    @property
    def saved(self) -> float | None:
        """Share of the baseline's steps that is saved; ``None`` unless every seed arrives.

        Those that arrive are the quick ones: a share over them alone would be a gain even where most never do.
        """
        if len(self.arrived) < len(self.variant_steps):
            return None
        return 1 - sum(self.arrived) / sum(self.baseline_steps)

    def text(self) -> str:
        """Return the mean steps with the share saved, or how many seeds arrive where not all do."""
        if not self.arrived:
            return "not reached"
        mean = f"{np.mean(self.arrived):.0f}"
        if self.saved is None:
            return f"{mean} ({len(self.arrived)} of {len(self.variant_steps)} seeds)"
        return f"{mean} ({-100 * self.saved:+z.0f} %)"


def steps_to_reach(curve: Curve, level: float) -> float | None:
    """Return the first step after the start at which ``level`` or more was seen, ``None`` if it never was.

    The answer is as fine as the evaluations: with one every 25 steps it is a multiple of 25.
    """
    seen = zip(curve.steps, curve.values, strict=True)
    return next((step for step, value in seen if step > 0 and value >= level), None)


def steps_to_scores(curves: Curves) -> list[StepsToScore]:
    """Time every variant to the best dev score of every other, seed by seed.

    Pairs of variants without a common seed are left out.

    Source: Huang et al. 2024 (CoSENT), Fig. 3 and section V-F, which times losses to a common level.
    Differs: the level is the baseline's best score of the same seed, not one read off a mean curve.
    """
    found = []
    for baseline, own in curves.items():
        for variant, other in curves.items():
            seeds = sorted(seed for seed in own.keys() & other.keys() if own[seed].best[0] > 0)
            if variant == baseline or not seeds:
                continue
            best, levels = zip(*(own[seed].best for seed in seeds), strict=True)
            times = [steps_to_reach(other[seed], level) for seed, level in zip(seeds, levels, strict=True)]
            found.append(
                StepsToScore(
                    variant=variant,
                    baseline=baseline,
                    level=float(np.mean(levels)),
                    baseline_steps=best,
                    variant_steps=tuple(times),
                )
            )
    return found


def steps_table(found: Sequence[StepsToScore], dataset: str) -> TitledTable:
    """Lay out the steps to each score on one data set: a row a level, a column a variant."""
    baselines = list(dict.fromkeys(one.baseline for one in found))
    variants = list(dict.fromkeys([*baselines, *(one.variant for one in found)]))
    cells = {(one.baseline, one.variant): one for one in found}
    rows = []
    for baseline in baselines:
        first = next(one for one in found if one.baseline == baseline)
        own = [cells[baseline, variant].text() if (baseline, variant) in cells else ABSENT for variant in variants]
        rows.append([one_line(baseline), f"{100 * first.level:.2f}", f"{np.mean(first.baseline_steps):.0f}", *own])
    header = ["best dev score of", "Spearman x100", "its steps", *map(one_line, variants)]
    return TitledTable(f"Steps to the best dev score of each: {dataset}", header, rows, numeric=header[1:])


def difference_table(comparisons: Sequence[Comparison]) -> str:
    """Lay out comparisons as a Markdown table, differences multiplied as their metric is shown."""
    rows = []
    for one in comparisons:
        measure = measure_of(one.metric)
        rows.append(
            [
                one_line(one.dataset),
                measure.label,
                f"{one_line(one.model)} - {one_line(one.reference)}",
                measure.text(one.difference),
                f"[{measure.text(one.low)}, {measure.text(one.high)}]",
                f"{one.adjusted:.3g}",
                one.finding,
            ]
        )
    header = ["data", "figure", "difference of", "value", "95 % interval", "p (Holm)", "significant"]
    return markdown(header, rows, numeric=("value", "95 % interval", "p (Holm)"))


def curve_figure(curves: Curves, dataset: str, stem: str, *, reference: str, styles: Mapping[str, Style]) -> Plot:
    """Draw how the variants learn on one data set; the caption says how soon each reaches the best of the reference."""
    named = [replace(curve, name=variant) for variant, own in curves.items() for curve in own.values()]
    drawn = learning_curves(named, name=stem, styles=styles)
    said = [
        f"{one.variant} reaches the best dev score of {one.baseline} ({100 * one.level:.1f} at step "
        f"{np.mean(one.baseline_steps):.0f}) at step {one.text()}."
        for one in steps_to_scores(curves)
        if one.baseline == reference and one.arrived
    ]
    return replace(drawn, caption=" ".join([f"{dataset}: {drawn.caption}", *said]))


def setting_figures(runs: Mapping[str, Sequence[Run]], settings: Sequence[str]) -> list[Plot]:
    """Draw the test figure against each setting that took two numbers or more while others stayed the same."""
    plots = []
    for setting in settings:
        for dataset, own in runs.items():
            fitting = [run for run in own if _is_number(run.settings.get(setting))]
            points = sweep_points(fitting, setting) if fitting else {}
            if any(len(values) > 1 for values in points.values()):
                name = stem("sweep", setting, dataset)
                plots.append(sweep(points, setting=setting, name=name))
    return plots


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
