"""Learning curves of runs, and sweeps over a setting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from samesense.data.conventions.numbers import number_text
from samesense.errors import DataError
from samesense.reports.figures.names import LETTER, entry, letters
from samesense.reports.figures.plot import Plot, Style, new_figure, style_of, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPEARMAN = "Spearman (x100)"
"""Label of the figure that a sweep shows."""

RATIO = 15
"""The axis is logarithmic if the largest setting is at least this many times the smallest."""


WIDTH = 7.6
"""Width of a figure in inches."""

HEIGHT = 4.0
"""Height of a figure in inches, without its legend."""

ENTRY = 0.2
"""Height of a line of the legend in inches."""

WIDEST_ENTRY = 100
"""Letters per line of a legend entry."""

SAMPLE = 0.6
"""Width in inches of the line sample beside a legend entry."""


@dataclass(frozen=True)
class Curve:
    """Values along steps, of one run."""

    name: str  # of the run; runs with the same name are seeds of one variant
    steps: tuple[float, ...]  # ascending (points,)
    values: tuple[float, ...]  # in their natural unit (points,)

    @property
    def best(self) -> tuple[float, float]:
        """Step and value of the best trained state; the untouched start at step 0 counts only if it is the only one."""
        points = list(zip(self.steps, self.values, strict=True))
        return max([point for point in points if point[0] > 0] or points, key=lambda point: point[1])


def learning_curves(
    curves: Sequence[Curve], *, name: str = "learning", styles: Mapping[str, Style] = MappingProxyType({})
) -> Plot:
    """Draw Spearman on dev along the steps; seeds of one run become their mean and a band of one standard deviation.

    The mean is taken at the steps that all seeds of a run have.

    Source: figures of this kind are Fig. 3 of Huang et al. 2024 (CoSENT).
    """
    if not curves or not all(curve.steps for curve in curves):
        raise DataError("Learning curves need runs that were evaluated on dev at one step or more.")
    series: dict[str, dict[float, list[float]]] = {}
    for run in dict.fromkeys(curve.name for curve in curves):
        seed_values = [dict(zip(c.steps, c.values, strict=True)) for c in curves if c.name == run]
        shared = [step for step in seed_values[0] if all(step in values for values in seed_values)]
        if not shared:
            raise DataError(
                f"The seeds of {run!r} were never evaluated at the same step. Give them names of their own."
            )
        series[run] = {step: [100 * values[step] for values in seed_values] for step in shared}
    caption = (
        "Spearman on dev along the training steps. A ring marks the best step; bands are one standard deviation over "
        "seeds, where a run has several."
    )
    with styled():
        plot = _draw(series, name, caption, "step", "Spearman on dev (x100)", styles, rings=True)
        plot.figure.axes[0].set_xlim(left=0)
    return plot


def sweep(points: Mapping[str, Mapping[float, Sequence[float]]], *, setting: str, name: str = "sweep") -> Plot:
    """Draw Spearman against a setting: mean and one standard deviation over seeds.

    ``points`` has one figure per seed, times 100, for each series and each value of the setting.

    Source: figures of this kind are Fig. 4 of Huang et al. 2024 (CoSENT) and Fig. 3 of Liu et al. 2023 (RankCSE).
    """
    if not any(len(values) > 1 for values in points.values()):
        raise DataError(f"A sweep needs runs with two values of {setting!r} or more. Give more run folders.")
    series = {label: {x: list(values[x]) for x in sorted(values)} for label, values in points.items()}
    caption = f"{SPEARMAN} against {setting}; bands are one standard deviation over seeds, where there are several."
    with styled():
        plot = _draw(series, name, caption, setting, SPEARMAN, {}, rings=False)
        axes = plot.figure.axes[0]
        settings = sorted({x for values in series.values() for x in values})
        positive = [x for x in settings if x > 0]
        if settings[0] >= 0 and positive[-1] / positive[0] >= RATIO:
            if settings[0] == 0:  # a logarithmic axis has no 0
                axes.set_xscale("symlog", linthresh=positive[0])
            else:
                axes.set_xscale("log")
        axes.set_xticks(settings, [number_text(x) for x in settings])
        axes.set_xticks([], minor=True)
    return plot


def _draw(
    series: Mapping[str, Mapping[float, Sequence[float]]],
    name: str,
    caption: str,
    x: str,
    y: str,
    styles: Mapping[str, Style],
    *,
    rings: bool,
) -> Plot:
    seeds = {label: max(map(len, values.values())) for label, values in series.items()}
    entries = {
        label: entry(f"{label} ({seeds[label]} seeds)" if seeds[label] > 1 else label, WIDEST_ENTRY) for label in series
    }
    longest = max(letters(line) for text in entries.values() for line in text.split("\n"))
    # As many columns as the widest entry leaves room for.
    columns = min(len(entries), max(1, int(WIDTH / (longest * LETTER / 72 + SAMPLE))))
    lines = sum(text.count("\n") + 1 for text in entries.values())
    figure = new_figure(WIDTH, HEIGHT + ENTRY * -(-lines // columns))
    axes = figure.subplots()
    for index, (label, values) in enumerate(series.items()):
        style = styles.get(label, style_of(index))
        _line(axes, entries[label], np.array(list(values)), list(values.values()), style, rings=rings)
    axes.set(xlabel=x, ylabel=y)
    figure.legend(loc="outside lower left", ncols=columns, frameon=False)
    return Plot(name, caption, figure)


def _line(
    axes: Axes, name: str, x: npt.NDArray[np.float64], values: Sequence[Sequence[float]], style: Style, *, rings: bool
) -> None:
    means = np.array([np.mean(seeds) for seeds in values])
    spread = np.array([np.std(seeds, ddof=1) if len(seeds) > 1 else 0.0 for seeds in values])
    axes.plot(
        x,
        means,
        linestyle=style.dash,
        color=style.colour,
        marker=style.marker,
        markersize=4.5,
        linewidth=1.6,
        label=name,
        markevery=max(1, len(x) // 12),
    )
    if spread.any():
        axes.fill_between(x, means - spread, means + spread, color=style.colour, alpha=0.2, linewidth=0)
    if rings:
        best = int(means.argmax())
        axes.plot([x[best]], [means[best]], "o", markersize=11, markerfacecolor="none", markeredgecolor=style.colour)
