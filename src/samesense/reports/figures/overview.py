"""The figure that a report opens with: models by score and speed, or the start and the trained model set by set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from samesense.errors import DataError
from samesense.reports.figures.names import LETTER, broken, entry, letters, shown_name, write_names
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
    speeds: tuple[float, float] | None = None  # the slowest and the fastest round


WIDE, NARROW = (8.4, 4.6), (3.7, 3.9)
"""Sizes in inches, for a desk and for a phone."""


LISTED = 38
"""Letters in a line of the list of models below a narrow figure."""


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
        listed = below * sum(1 + entry(place.model, LISTED).count("\n") for place in timed)
        figure = new_figure(width, height + 0.2 * listed if timed else 1.1 + ROW * len(places))
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
        caption += ", against sentences a second on this machine (logarithmic, with the range); upper right is better"
        left = [f"{one.model} ({one.score:.1f})" for one in places if not one.speed]
        caption += f". Without a measured speed: {', '.join(left)}" if left else ""
    return Plot(name, caption + ".", figure)


ROW = 0.42
"""Height of a row in inches."""


def rows_by_set(
    sets: Mapping[str, Sequence[Place]],
    *,
    styles: Mapping[str, Style],
    score: str,
    name: str,
    caption: str,
    size: tuple[float, float] = WIDE,
) -> Plot:
    """Draw the scores of models with their intervals in rows, a panel for each set under its title, on one scale.

    ``score`` says what the scores are. The height follows the rows, and of ``size`` only the width counts. A title has
    ends of lines where it is to be broken first if it is too long for one line. DataError without a set, or for a set
    without a model.
    """
    if not sets or not all(sets.values()):
        raise DataError("Rows by set need one set or more, each with a model.")
    width = size[0]
    titles = [_broken(title, width) for title in sets]
    rows, lines = [len(own) for own in sets.values()], sum(title.count("\n") + 1 for title in titles)
    with styled():
        figure = new_figure(width, ROW * sum(rows) + 0.25 * lines + 0.7)
        panels = figure.subplots(len(sets), sharex=True, squeeze=False, height_ratios=rows)[:, 0]
        for axes, title, own in zip(panels, titles, sets.values(), strict=True):
            _in_rows(axes, own, styles)
            axes.set_title(title, loc="left")
        figure.supxlabel(score, fontsize=9.5)
    return Plot(name, caption, figure)


def _broken(title: str, width: float) -> str:
    """Return a title on as few lines as it needs above axes in a figure of so many inches, beside the row names."""
    most = round((width - 0.9) * 72 / LETTER)
    lines = [title.replace("\n", " ")] if letters(title) <= most else title.split("\n")
    return "\n".join(broken(line, most) for line in lines)


def _by_speed(axes: Axes, places: Sequence[Place], styles: Mapping[str, Style], score: str) -> None:
    axes.set_xscale("log")
    speeds = [place.speed or 1.0 for place in places]
    for place, speed in zip(places, speeds, strict=True):
        own = styles.get(place.model, style_of(0))
        axes.plot([speed, speed], [place.low, place.high], color=own.colour, linewidth=2)
        if place.speeds is not None:
            axes.plot(place.speeds, [place.score, place.score], color=own.colour, linewidth=2)
        axes.plot(
            [speed], [place.score], own.marker, color=own.colour, markersize=9, markeredgecolor=INK,
            markeredgewidth=0.8, linestyle="none", label=entry(place.model, LISTED),
        )  # fmt: skip
    ends = [speed for place in places for speed in place.speeds or ()] + speeds
    axes.set_xlim(min(ends) / 2.2, max(ends) * 2.2)
    axes.margins(y=0.12)
    axes.set(xlabel="sentences a second", ylabel=score)
    axes.xaxis.set_major_formatter(lambda value, _: _tick(value))
    axes.xaxis.set_minor_formatter(lambda value, _: _between(value, max(speeds) / min(speeds)))
    axes.tick_params(axis="x", which="minor", labelsize=8, labelcolor=MUTED)


def _name(axes: Axes, places: Sequence[Place]) -> None:
    at = {place.model: (place.speed or 1.0, place.score) for place in places}
    bars = [((place.speed or 1.0, place.low), (place.speed or 1.0, place.high)) for place in places]
    bars += [
        ((place.speeds[0], place.score), (place.speeds[1], place.score)) for place in places if place.speeds is not None
    ]
    write_names(axes, {shown_name(model): [point] for model, point in at.items()}, bars)


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
    axes.set_yticks(range(len(places)), [shown_name(place.model) for place in places])
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.grid(False, axis="y")
