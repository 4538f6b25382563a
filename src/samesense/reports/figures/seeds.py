"""The figure of each seed of several variants, beside their mean and one standard deviation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from samesense.errors import DataError
from samesense.reports.figures.names import shown_name
from samesense.reports.figures.plot import INK, Plot, Style, new_figure, style_of, styled

WIDTH = 7.0
"""Inches."""

ROW = 0.42
"""Height of a row in inches."""


def seed_figures(
    values: Mapping[str, Sequence[float]], *, styles: Mapping[str, Style], score: str, name: str, caption: str
) -> Plot:
    """Draw the figure of every seed as a dot, a row per variant; a bar is the mean, a line one standard deviation.

    ``values`` has one figure per seed for each variant, in shown units; ``score`` says what they are.

    Raises:
        DataError: if there is no variant, or one has no figure.
    """
    if not values or not all(values.values()):
        raise DataError("A figure of seeds needs a variant or more, each with a figure.")
    with styled():
        figure = new_figure(WIDTH, ROW * len(values) + 0.8)
        axes = figure.subplots()
        for row, (variant, figures) in enumerate(values.items()):
            style = styles.get(variant, style_of(row))
            mean = float(np.mean(figures))
            if len(figures) > 1:
                spread = float(np.std(figures, ddof=1))
                axes.plot([mean - spread, mean + spread], [row, row], color=style.colour, linewidth=2)
            axes.plot([mean, mean], [row - 0.25, row + 0.25], color=INK, linewidth=1.6)
            axes.plot(figures, [row] * len(figures), style.marker, color=style.colour, markersize=5.5, alpha=0.8)
        axes.set_yticks(range(len(values)), [shown_name(variant) for variant in values])
        axes.set_ylim(len(values) - 0.5, -0.5)
        axes.grid(False, axis="y")
        axes.set_xlabel(score)
    return Plot(name, caption, figure)
