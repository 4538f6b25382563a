"""The figure that a report opens with: models by score and speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samesense.errors import DataError
from samesense.reports.figures.names import write_names
from samesense.reports.figures.plot import INK, MUTED, Plot, Style, new_figure, style_of, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Place:
    """Where a model lies."""

    model: str
    score: float  # as it is to be shown, as are the ends of its 95 % interval
    low: float
    high: float
    speed: float | None = None  # sentences a second, where it was measured


WIDE, NARROW = (8.4, 4.6), (3.7, 3.9)
"""Sizes in inches, for a desk and for a phone."""


def overview(
    places: Sequence[Place], *, styles: Mapping[str, Style], score: str, name: str, size: tuple[float, float] = WIDE
) -> Plot:
    """Draw the score of each model with its interval, against its speed where any was measured.

    ``score`` says what the score is. Names stand beside the models, and below the figure where it is narrow. Models
    without a speed, where others have one, are named in the caption.
    """
    if not places:
        raise DataError("The overview needs one model or more.")
    timed = [place for place in places if place.speed]
    with styled():
        width, height = size
        below = size == NARROW
        figure = new_figure(width, height + 0.2 * below * len(timed) if timed else 1.1 + 0.42 * len(places))
        axes = figure.subplots()
        if timed:
            _by_speed(axes, timed, styles, score)
            if below:
                figure.legend(loc="outside lower left", frameon=False)
            else:
                _name(axes, timed)
        else:
            _in_rows(axes, places, styles)
            figure.supxlabel(score, fontsize=9.5)
    caption = f"{score}, with 95 % intervals"
    if timed:
        caption += ", against sentences a second on this machine (logarithmic); upper right is better"
        left = [f"{one.model} ({one.score:.1f})" for one in places if not one.speed]
        caption += f". Without a measured speed: {', '.join(left)}" if left else ""
    return Plot(name, caption + ".", figure)


def _by_speed(axes: Axes, places: Sequence[Place], styles: Mapping[str, Style], score: str) -> None:
    axes.set_xscale("log")
    speeds = [place.speed or 1.0 for place in places]
    for place, speed in zip(places, speeds, strict=True):
        own = styles.get(place.model, style_of(0))
        axes.plot([speed, speed], [place.low, place.high], color=own.colour, linewidth=2)
        axes.plot(
            [speed], [place.score], own.marker, color=own.colour, markersize=9, markeredgecolor=INK,
            markeredgewidth=0.8, linestyle="none", label=place.model,
        )  # fmt: skip
    axes.set_xlim(min(speeds) / 2.2, max(speeds) * 2.2)
    axes.margins(y=0.12)
    axes.set(xlabel="sentences a second", ylabel=score)
    axes.xaxis.set_major_formatter(lambda value, _: _tick(value))
    axes.xaxis.set_minor_formatter(lambda value, _: _between(value, max(speeds) / min(speeds)))
    axes.tick_params(axis="x", which="minor", labelsize=8, labelcolor=MUTED)


def _name(axes: Axes, places: Sequence[Place]) -> None:
    at = {place.model: (place.speed or 1.0, place.score) for place in places}
    bars = [((place.speed or 1.0, place.low), (place.speed or 1.0, place.high)) for place in places]
    write_names(axes, {model: [point] for model, point in at.items()}, bars)


def _tick(value: float) -> str:
    """Return the label of a speed: ``0.1``, ``1,000``, ``10k``, ``1M``."""
    if value < 1:
        return f"{value:g}"
    return f"{value:,.0f}" if value < 1e4 else f"{value / 1e3:.0f}k" if value < 1e6 else f"{value / 1e6:.0f}M"


def _between(value: float, ratio: float) -> str:
    """Return the label of a minor tick: at 2 and 5 in each decade, where ``ratio`` of the speeds is small."""
    leading = round(value / 10 ** (len(str(int(value))) - 1)) if value >= 1 else 0
    return _tick(value) if leading in (2, 5) and ratio < 100 else ""


def _in_rows(axes: Axes, places: Sequence[Place], styles: Mapping[str, Style]) -> None:
    for row, place in enumerate(places):
        own = styles.get(place.model, style_of(0))
        axes.plot([place.low, place.high], [row, row], color=own.colour, linewidth=2)
        axes.plot([place.score], [row], own.marker, color=own.colour, markersize=9, markeredgecolor=INK)
    axes.set_yticks(range(len(places)), [place.model for place in places])
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.grid(False, axis="y")
