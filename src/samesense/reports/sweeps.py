"""Summaries of the runs of a sweep: steps to a score, differences, and curves over a setting."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from samesense.reports.figures.curves import Curve, learning_curves, sweep
from samesense.reports.figures.differences import Difference, difference_figure
from samesense.reports.figures.plot import Plot, Style
from samesense.reports.grid import ABSENT
from samesense.reports.illustrate import stem
from samesense.reports.significance import Comparison
from samesense.reports.store import Run, sweep_points
from samesense.reports.tables import TitledTable, markdown
from samesense.results.markup import one_line
from samesense.results.measures import measure_of
from samesense.results.results import is_mean

Curves = Mapping[str, Mapping[int, Curve]]
"""Learning curves on one data set, by variant and seed."""


@dataclass(frozen=True, kw_only=True)
class StepsToScore:
    """The steps that one variant takes to the best dev score of another."""

    variant: str
    baseline: str  # the variant whose best dev score is the level
    level: float  # best dev score of the baseline, the mean over seeds
    baseline_steps: tuple[float, ...]  # steps of the baseline to its best, one per seed
    # Steps of the variant to that score, one per seed; None for a seed that never reaches it.
    variant_steps: tuple[float | None, ...]

    @property
    def arrived(self) -> list[float]:
        """Steps of the seeds that reach the level."""
        return [steps for steps in self.variant_steps if steps is not None]

    @property
    def saved(self) -> float | None:
        """Share of the baseline's steps that is saved; ``None`` unless every seed reaches the level.

        The seeds that reach it are the quick ones: a share over them alone would be a gain even if most never do.
        """
        if len(self.arrived) < len(self.variant_steps):
            return None
        return 1 - sum(self.arrived) / sum(self.baseline_steps)

    def text(self) -> str:
        """Return the mean steps with the share saved, or with the number of seeds if not all reach the level."""
        if not self.arrived:
            return "not reached"
        mean = f"{np.mean(self.arrived):.0f}"
        if self.saved is None:
            return f"{mean} ({len(self.arrived)} of {len(self.variant_steps)} seeds)"
        return f"{mean} ({-100 * self.saved:+z.0f} %)"


def steps_to_reach(curve: Curve, level: float) -> float | None:
    """Return the first step after the start with ``level`` or more; ``None`` if there is none.

    The resolution is that of the evaluations: with one every 25 steps the result is a multiple of 25.
    """
    points = zip(curve.steps, curve.values, strict=True)
    return next((step for step, value in points if step > 0 and value >= level), None)


def steps_to_scores(curves: Curves) -> list[StepsToScore]:
    """Return the steps of every variant to the best dev score of every other, seed by seed.

    Pairs of variants without a common seed are left out.

    Source: Huang et al. 2024 (CoSENT), Fig. 3 and section V-F, which times losses to a common level.
    Differs: the level is the baseline's best score of the same seed, not one read off a mean curve.
    """
    measured = []
    for baseline, baseline_curves in curves.items():
        for variant, variant_curves in curves.items():
            seeds = sorted(
                seed for seed in baseline_curves.keys() & variant_curves.keys() if baseline_curves[seed].best[0] > 0
            )
            if variant == baseline or not seeds:
                continue
            best, levels = zip(*(baseline_curves[seed].best for seed in seeds), strict=True)
            times = [steps_to_reach(variant_curves[seed], level) for seed, level in zip(seeds, levels, strict=True)]
            measured.append(
                StepsToScore(
                    variant=variant,
                    baseline=baseline,
                    level=float(np.mean(levels)),
                    baseline_steps=best,
                    variant_steps=tuple(times),
                )
            )
    return measured


def steps_table(measured: Sequence[StepsToScore], dataset: str) -> TitledTable:
    """Lay out the steps to each score on one data set: a row per score, a column per variant."""
    baselines = list(dict.fromkeys(steps.baseline for steps in measured))
    variants = list(dict.fromkeys([*baselines, *(steps.variant for steps in measured)]))
    cells = {(steps.baseline, steps.variant): steps for steps in measured}
    rows = []
    for baseline in baselines:
        first = next(steps for steps in measured if steps.baseline == baseline)
        texts = [cells[baseline, variant].text() if (baseline, variant) in cells else ABSENT for variant in variants]
        rows.append([one_line(baseline), f"{100 * first.level:.2f}", f"{np.mean(first.baseline_steps):.0f}", *texts])
    header = ["best dev score of", "Spearman x100", "its steps", *map(one_line, variants)]
    return TitledTable(f"Steps to the best dev score of each: {dataset}", header, rows, numeric=header[1:])


def difference_table(comparisons: Sequence[Comparison]) -> str:
    """Lay out comparisons as a Markdown table, differences in the shown unit of their metric."""
    rows = []
    for comparison in comparisons:
        measure = measure_of(comparison.metric)
        rows.append(
            [
                one_line(comparison.dataset),
                measure.label,
                f"{one_line(comparison.model)} - {one_line(comparison.reference)}",
                measure.text(comparison.difference),
                f"[{measure.text(comparison.low)}, {measure.text(comparison.high)}]",
                f"{comparison.adjusted:.3g}",
                comparison.finding,
            ]
        )
    header = ["data", "figure", "difference of", "value", "95 % interval", "p (Holm)", "significant"]
    return markdown(header, rows, numeric=("value", "95 % interval", "p (Holm)"))


def differences_of_means(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Return the comparisons of means over several sets; all where there are none."""
    of_means = [comparison for comparison in comparisons if is_mean(comparison.dataset)]
    return of_means or list(comparisons)


def comparison_figure(comparisons: Sequence[Comparison], *, name: str, untrained: Collection[str] = ()) -> Plot:
    """Draw the differences from the reference, of means over several sets, or of each set where there are none.

    Models named in ``untrained`` are left out, as their differences are many times those between methods. DataError if
    nothing is left.
    """
    panels: dict[str, list[Difference]] = {}
    trained = [comparison for comparison in differences_of_means(comparisons) if comparison.model not in untrained]
    for comparison in trained:
        measure = measure_of(comparison.metric)
        value, low, high = (measure.factor * end for end in (comparison.difference, comparison.low, comparison.high))
        row = Difference(
            label=comparison.model,
            value=value,
            low=low,
            high=high,
            significant=comparison.significant,
        )
        panels.setdefault(f"{comparison.dataset}, {measure.heading}", []).append(row)
    return difference_figure(
        panels,
        unit=f"difference from {' and '.join(dict.fromkeys(item.reference for item in trained))}",
        name=name,
        caption="Differences with 95 % intervals; full dots are significant after adjustment.",
    )


def curve_figure(curves: Curves, dataset: str, stem: str, *, reference: str, styles: Mapping[str, Style]) -> Plot:
    """Draw the learning curves of the variants on one data set.

    The caption says how soon each variant reaches the best score of the reference.
    """
    by_variant = [replace(curve, name=variant) for variant, by_seed in curves.items() for curve in by_seed.values()]
    plot = learning_curves(by_variant, name=stem, styles=styles)
    sentences = [
        f"{steps.variant} reaches the best dev score of {steps.baseline} ({100 * steps.level:.1f} at step "
        f"{np.mean(steps.baseline_steps):.0f}) at step {steps.text()}."
        for steps in steps_to_scores(curves)
        if steps.baseline == reference and steps.arrived
    ]
    return replace(plot, caption=" ".join([f"{dataset}: {plot.caption}", *sentences]))


def setting_figures(runs: Mapping[str, Sequence[Run]], settings: Sequence[str]) -> list[Plot]:
    """Draw the test figure against each setting that has two or more numbers while the other settings are equal."""
    plots = []
    for setting in settings:
        for dataset, runs_on_dataset in runs.items():
            fitting = [run for run in runs_on_dataset if _is_number(run.settings.get(setting))]
            points = sweep_points(fitting, setting) if fitting else {}
            if any(len(values) > 1 for values in points.values()):
                name = stem("sweep", setting, dataset)
                plots.append(sweep(points, setting=setting, name=name))
    return plots


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
