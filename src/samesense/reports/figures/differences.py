"""Differences with their intervals in rows, a panel for each set: a forest plot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samesense.errors import DataError
from samesense.reports.figures.names import broken
from samesense.reports.figures.plot import GROUND, INK, MUTED, SERIES, Plot, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH = 7.4
"""Inches."""

ROW = 0.3
"""Height of a line of a label in inches."""

LETTERS = 46
"""Letters per line of a label."""


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A difference in shown units."""

    label: str  # what is compared
    value: float
    low: float  # lower end of the 95 % interval
    high: float  # upper end of it
    significant: bool  # after adjustment
    published: float | None = None  # the difference that a paper has


def difference_figure(panels: Mapping[str, Sequence[Difference]], *, unit: str, name: str, caption: str) -> Plot:
    """Draw differences with their intervals, a panel for each key of ``panels``, on one scale.

    A dot is full if the difference is significant, and hollow if not; a diamond is the difference that a paper has.
    ``unit`` says what the differences are.

    Raises:
        DataError: if there is no panel, or one is empty.
    """
    if not panels or not all(panels.values()):
        raise DataError("A figure of differences needs a panel or more, each with a difference.")
    labels = {title: [broken(row.label, LETTERS) for row in rows] for title, rows in panels.items()}
    heights = [sum(label.count("\n") + 1 for label in of_panel) for of_panel in labels.values()]
    with styled():
        figure = new_figure(WIDTH, ROW * sum(heights) + 0.3 * len(panels) + 0.6)
        all_axes = figure.subplots(len(panels), sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for axes, (title, rows) in zip(all_axes, panels.items(), strict=True):
            _draw_panel(axes, rows, labels[title])
            axes.set_title(title, loc="left")
        all_axes[-1].set_xlabel(unit)
    return Plot(name, caption, figure)


def _draw_panel(axes: Axes, rows: Sequence[Difference], labels: Sequence[str]) -> None:
    axes.axvline(0, color=MUTED, linewidth=1)
    for row, difference in enumerate(rows):
        fill = SERIES[0] if difference.significant else GROUND
        axes.plot([difference.low, difference.high], [row, row], color=SERIES[0], linewidth=2)
        axes.plot([difference.value], [row], "o", color=fill, markersize=7, markeredgecolor=SERIES[0])
        if difference.published is not None:
            axes.plot([difference.published], [row], "D", color=SERIES[1], markersize=5, markeredgecolor=INK)
    axes.set_yticks(range(len(rows)), labels)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    axes.grid(False, axis="y")
