"""The opening figure of a report: models by score and speed, or the start and the trained model set by set."""

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
class ModelScore:
    """The score and speed of a model, in shown units."""

    model: str
    score: float
    low: float  # lower end of the 95 % interval of the score
    high: float  # upper end of it
    speed: float | None = None  # sentences a second, where it was measured
    speeds: tuple[float, float] | None = None  # the slowest and the fastest round


WIDE = (8.4, 4.6)
"""Size for a desk, in inches."""

NARROW = (3.7, 3.9)
"""Size for a phone, in inches."""


LISTED = 38
"""Letters per line of the list of models below a narrow figure."""


def overview(
    models: Sequence[ModelScore],
    *,
    styles: Mapping[str, Style],
    score: str,
    name: str,
    size: tuple[float, float] = WIDE,
) -> Plot:
    """Draw the score of each model with its interval, against its speed where any was measured.

    ``score`` says what the score is. Names stand beside the models, and below the figure where it is narrow. Models
    without a speed, where others have one, are named in the caption.
    """
    if not models:
        raise DataError("The overview needs one model or more.")
    timed = [scored for scored in models if scored.speed]
    with styled():
        width, height = size
        names_below = size == NARROW
        if not timed:
            height = 1.1 + ROW * len(models)
        elif names_below:
            height += 0.2 * sum(1 + entry(scored.model, LISTED).count("\n") for scored in timed)
        figure = new_figure(width, height)
        axes = figure.subplots()
        if timed:
            _by_speed(axes, timed, styles, score)
            if names_below:
                figure.legend(loc="outside lower left", frameon=False)
            else:
                _name(axes, timed)
        else:
            _in_rows(axes, models, styles)
            figure.supxlabel(score, fontsize=9.5)
    caption = f"{score}, with 95 % intervals"
    if timed:
        caption += ", against sentences a second on this machine (logarithmic, with the range); upper right is better"
        untimed = [
            f"{scored_model.model} ({scored_model.score:.1f})" for scored_model in models if not scored_model.speed
        ]
        if untimed:
            caption += f". Without a measured speed: {', '.join(untimed)}"
    return Plot(name, caption + ".", figure)


ROW = 0.42
"""Height of a row in inches."""


def rows_by_set(
    sets: Mapping[str, Sequence[ModelScore]],
    *,
    styles: Mapping[str, Style],
    score: str,
    name: str,
    caption: str,
    size: tuple[float, float] = WIDE,
) -> Plot:
    """Draw the scores of models with their intervals in rows, a panel for each set under its title, on one scale.

    ``score`` says what the scores are. The height follows from the number of rows; of ``size`` only the width is used.
    Line ends in a title are where it is broken first if it is too long for one line. DataError without a set, or for a
    set without a model.
    """
    if not sets or not all(sets.values()):
        raise DataError("Rows by set need one set or more, each with a model.")
    width = size[0]
    titles = [_broken(title, width) for title in sets]
    rows = [len(models) for models in sets.values()]
    lines = sum(title.count("\n") + 1 for title in titles)
    with styled():
        figure = new_figure(width, ROW * sum(rows) + 0.25 * lines + 0.7)
        panels = figure.subplots(len(sets), sharex=True, squeeze=False, height_ratios=rows)[:, 0]
        for axes, title, models in zip(panels, titles, sets.values(), strict=True):
            _in_rows(axes, models, styles)
            axes.set_title(title, loc="left")
        figure.supxlabel(score, fontsize=9.5)
    return Plot(name, caption, figure)


def _broken(title: str, width: float) -> str:
    """Return a title broken into as few lines as fit above the axes of a figure ``width`` inches wide."""
    most = round((width - 0.9) * 72 / LETTER)
    if letters(title) <= most:
        lines = [title.replace("\n", " ")]
    else:
        lines = title.split("\n")
    return "\n".join(broken(line, most) for line in lines)


def _by_speed(axes: Axes, models: Sequence[ModelScore], styles: Mapping[str, Style], score: str) -> None:
    axes.set_xscale("log")
    speeds = [model.speed or 1.0 for model in models]
    for model, speed in zip(models, speeds, strict=True):
        style = styles.get(model.model, style_of(0))
        axes.plot([speed, speed], [model.low, model.high], color=style.colour, linewidth=2)
        if model.speeds is not None:
            axes.plot(model.speeds, [model.score, model.score], color=style.colour, linewidth=2)
        axes.plot(
            [speed],
            [model.score],
            style.marker,
            color=style.colour,
            markersize=9,
            markeredgecolor=INK,
            markeredgewidth=0.8,
            linestyle="none",
            label=entry(model.model, LISTED),
        )
    ends = [speed for model in models for speed in model.speeds or ()] + speeds
    axes.set_xlim(min(ends) / 2.2, max(ends) * 2.2)
    axes.margins(y=0.12)
    axes.set(xlabel="sentences a second", ylabel=score)
    axes.xaxis.set_major_formatter(lambda value, _: _tick(value))
    axes.xaxis.set_minor_formatter(lambda value, _: _between(value, max(speeds) / min(speeds)))
    axes.tick_params(axis="x", which="minor", labelsize=8, labelcolor=MUTED)


def _name(axes: Axes, models: Sequence[ModelScore]) -> None:
    points = {model_score.model: (model_score.speed or 1.0, model_score.score) for model_score in models}
    bars = [
        ((model_score.speed or 1.0, model_score.low), (model_score.speed or 1.0, model_score.high))
        for model_score in models
    ]
    bars += [
        ((model_score.speeds[0], model_score.score), (model_score.speeds[1], model_score.score))
        for model_score in models
        if model_score.speeds is not None
    ]
    write_names(axes, {shown_name(model): [point] for model, point in points.items()}, bars)


def _tick(value: float) -> str:
    """Return the label of a speed: ``0.1``, ``1,000``, ``10k``, ``1M``."""
    if value < 1:
        return f"{value:g}"
    if value < 1e4:
        return f"{value:,.0f}"
    if value < 1e6:
        return f"{value / 1e3:.0f}k"
    return f"{value / 1e6:.0f}M"


def _between(value: float, ratio: float) -> str:
    """Return the label of a minor tick: at 2 and 5 in each decade, if the ratio of the speeds is below 100."""
    leading = 0
    if value >= 1:
        leading = round(value / 10 ** (len(str(int(value))) - 1))
    if leading in (2, 5) and ratio < 100:
        return _tick(value)
    return ""


def _in_rows(axes: Axes, models: Sequence[ModelScore], styles: Mapping[str, Style]) -> None:
    for row, model in enumerate(models):
        style = styles.get(model.model, style_of(0))
        axes.plot([model.low, model.high], [row, row], color=style.colour, linewidth=2)
        axes.plot([model.score], [row], style.marker, color=style.colour, markersize=9, markeredgecolor=INK)
    axes.set_yticks(range(len(models)), [shown_name(model.model) for model in models])
    axes.set_ylim(len(models) - 0.5, -0.5)
    axes.grid(False, axis="y")
