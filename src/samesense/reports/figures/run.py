"""Figures of one training run: narrow enough to stand side by side on a desk and alone on a phone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from samesense.errors import DataError
from samesense.reports.figures.curves import Curve
from samesense.reports.figures.plot import INK, MUTED, Plot, new_figure, style_of, styled
from samesense.types import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 4.4
"""Width in inches: on a phone of 360 points such a figure is hardly scaled down."""

BINS = 60

START = style_of(6)
"""Style of the untouched start in every figure of a run."""

END = style_of(0)
"""Style of the trained model in every figure of a run."""


def dev_curve(dev: Curve, pairs: str = "on dev") -> Plot:
    """Draw Spearman along the steps on dev or on other ``pairs``, with the untouched start at step 0 and as a line."""
    with styled():
        axes = _steps(dev, 100, f"Spearman {pairs} (x100)")
        best_step, best = dev.best
        if best_step:
            axes.plot([best_step], [100 * best], "o", markersize=10, markerfacecolor="none", markeredgecolor=END.colour)
        if dev.steps[0] == 0:
            axes.axhline(100 * dev.values[0], color=START.colour, linestyle="--", linewidth=1.2)
    caption = f"Spearman {pairs}. A ring marks the best state, the dashed line the untouched start."
    return Plot("dev", caption, _of(axes))


def loss_curve(loss: Curve) -> Plot:
    """Draw the training loss along the steps."""
    with styled():
        axes = _steps(loss, 1, "training loss")
    return Plot("loss", "Training loss, the mean of the steps since the point before.", _of(axes))


def term_curve(name: str, term: Curve, equal: Curve | None = None) -> Plot:
    """Draw a term of the loss along the steps; ``equal`` is what it costs if all scores are equal, as a line."""
    caption = f"The term {name} of the loss."
    with styled():
        axes = _steps(term, 1, name)
        if equal is not None:
            axes.plot(equal.steps, equal.values, color=START.colour, linestyle="--", linewidth=1.2)
            caption = f"{caption} The dashed line is its cost if all scores are equal, when nothing is ranked."
    return Plot(f"term-{name}", caption, _of(axes))


def _steps(curve: Curve, factor: float, label: str) -> Axes:
    axes = new_figure(WIDTH, 2.7).subplots()
    values = factor * np.array(curve.values)
    axes.plot(curve.steps, values, color=END.colour, marker="o", markersize=3.5, linewidth=1.6)
    axes.set(xlabel="step", ylabel=label)
    axes.set_xlim(left=0)
    return axes


def _of(axes: Axes) -> Figure:
    return axes.figure  # type: ignore[return-value]  # of axes of no figure in a figure


def closeness(before: Floats | None, after: Floats | None) -> Plot:
    """Draw the distribution of the cosines of random pairs of texts ``(pairs,)`` before and after training.

    Source: Ethayarajh (2019), "How contextual are contextualized word representations?", for their mean as a measure of
        the cone in which embeddings lie.
    """
    spreads = [
        (cosines, name, style)
        for cosines, name, style in ((before, "start", START), (after, "trained", END))
        if cosines is not None
    ]
    if not spreads:
        raise DataError("This figure needs the cosines of a model that embeds.")
    with styled():
        figure = new_figure(WIDTH, 2.7)
        axes = figure.subplots()
        lowest = min(float(cosines.min()) for cosines, *_ in spreads)
        highest = max(float(cosines.max()) for cosines, *_ in spreads)
        edges = np.linspace(lowest - 0.01, highest + 0.01, BINS + 1)
        for cosines, name, style in spreads:
            axes.hist(
                cosines,
                edges.tolist(),
                histtype="stepfilled",
                color=style.colour,
                alpha=0.45,
                edgecolor=style.colour,
                linewidth=1.2,
                weights=np.full(len(cosines), 1 / len(cosines)),
                label=f"{name}, mean {cosines.mean():.2f}",
            )
            axes.axvline(float(cosines.mean()), color=style.colour, linestyle="--", linewidth=1.4)
        axes.set(xlabel="cosine of two random texts", ylabel="share of pairs")
        axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
        axes.legend(fontsize=8.5)
    caption = "Cosines of random pairs of different texts; the dashed lines are their means."
    return Plot("closeness", caption, figure)


def extrapolated(points: Sequence[tuple[int, float]], band: Sequence[tuple[float, float, float, float]]) -> Plot:
    """Draw the scores of models trained on parts of the data, and the fitted curve with its band beyond them."""
    with styled():
        figure = new_figure(WIDTH, 3.0)
        axes = figure.subplots()
        rows, middle, low, high = 100 * np.array(band).T
        rows = rows / 100
        axes.fill_between(rows, low, high, color=END.colour, alpha=0.2, linewidth=0)
        axes.plot(rows, middle, color=END.colour, linewidth=1.6)
        axes.plot([size for size, _ in points], [100 * score for _, score in points], "o", color=INK, markersize=4)
        most = max(size for size, _ in points)
        axes.axvline(2 * most, color=MUTED, linestyle=":", linewidth=1.2)
        axes.annotate("twice", (2 * most, axes.get_ylim()[0]), (3, 3), textcoords="offset points", fontsize=8.5)
        axes.set_xscale("log", base=2)
        ticks = sorted({size for size, _ in points} | {2 * most})
        axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks], rotation=30)
        axes.set_xticks([], minor=True)
        axes.set(xlabel="training rows", ylabel="Spearman (x100)")
    caption = (
        "A dot is a model trained on this number of rows; the curve is a power law with a limit, with its 95 % band."
    )
    return Plot("more-data", caption, figure)
