"""The figure of a calibration: reliability, the map from scores to values, a histogram of scores, and thresholds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from samesense.data.conventions.numbers import number_text
from samesense.metrics.calibration import reliability
from samesense.metrics.guarantee import share_lower_bound
from samesense.reports.figures.plot import INK, MUTED, Plot, Style, new_figure, style_of, styled
from samesense.types import Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HISTOGRAM_BINS = 40


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """The data behind the figure of a calibration."""

    scores: Scores  # of the model (n,)
    labels: Scores  # of the pairs (n,)
    # Values on the scale of the labels (n,) by name, such as held-out predictions and the raw score.
    predicted: Mapping[str, Scores]
    scale: tuple[float, float]  # lowest and highest label
    map: tuple[Scores, Scores]  # scores, and the values that they are mapped to
    thresholds: Mapping[str, float]  # by name, scores from which on a pair is classified as yes
    yes: float | None  # label from which on a pair is a yes; None for graded labels
    data: str  # name of the pairs
    used: float | None = None  # the threshold that is kept


def calibration(fitted: Fitted, *, name: str = "calibration") -> Plot:
    """Draw predicted against observed values, the map, a histogram of the scores, and for yes and no each threshold."""
    with styled():
        if fitted.yes is None:
            figure = new_figure(8.4, 4.1)
            panels = figure.subplot_mosaic([["bins", "map"], ["bins", "scores"]], height_ratios=(3, 2))
        else:
            figure = new_figure(8.4, 7.4)
            panels = figure.subplot_mosaic(
                [["bins", "map"], ["bins", "scores"], ["thresholds", "thresholds"]], height_ratios=(3, 2, 3.4)
            )
            _thresholds(panels["thresholds"], fitted, fitted.labels >= fitted.yes)
        _bins(panels["bins"], fitted)
        _map(panels["map"], fitted)
        _histogram(panels["scores"], fitted)
        panels["scores"].sharex(panels["map"])
        panels["map"].tick_params(labelbottom=False)
    caption = (
        f"{fitted.data}: reliability of {' and '.join(fitted.predicted)}. Each point is a bin of about equally many "
        "pairs, its bar a 95 % interval of the mean label; on the diagonal a value means what it says. Right: the "
        "value that is made of each score, beside the mean label of scores like it, and where the scores lie."
    )
    if fitted.yes is not None:
        caption = (
            f"{caption} Below: what each threshold gives on these pairs; the band reaches down to what the share that "
            "is right is at least on new pairs, with 95 % confidence for each threshold by itself."
        )
    return Plot(name, caption, figure)


def _bins(axes: Axes, fitted: Fitted) -> None:
    axes.plot(fitted.scale, fitted.scale, color=MUTED, linewidth=0.9, linestyle="--")
    for index, (name, values) in enumerate(fitted.predicted.items()):
        _points(axes, values, fitted.labels, style_of(index), name)
    axes.set_xlabel("predicted")
    axes.set_ylabel("share of yes" if _is_probability(fitted) else "mean label")
    axes.set_xlim(*_margins(fitted.scale))
    axes.set_ylim(*_margins(fitted.scale))
    axes.set_aspect("equal")
    axes.set_title("does a value mean what it says?")
    axes.legend(loc="upper left", fontsize=8)


def _map(axes: Axes, fitted: Fitted) -> None:
    _points(axes, fitted.scores, fitted.labels, style_of(1), "mean label")
    axes.plot(*fitted.map, color=style_of(0).colour, linewidth=1.6, label="map", zorder=3)
    axes.set_ylabel("probability" if _is_probability(fitted) else "value")
    axes.set_ylim(*_margins(fitted.scale))
    axes.set_title("what is made of a score")
    axes.legend(loc="upper left", fontsize=8)


def _histogram(axes: Axes, fitted: Fitted) -> None:
    if fitted.yes is None:
        axes.hist(fitted.scores, HISTOGRAM_BINS, color=style_of(0).colour, alpha=0.7)
    else:
        yes = fitted.labels >= fitted.yes
        edges = np.histogram_bin_edges(fitted.scores, HISTOGRAM_BINS)
        for index, (name, members) in enumerate((("yes", yes), ("no", ~yes))):
            axes.hist(
                fitted.scores[members],
                edges.tolist(),
                histtype="stepfilled",
                alpha=0.45,
                color=style_of(index).colour,
                hatch=style_of(index).hatch,
                label=f"{name} ({int(members.sum())})",
            )
    for index, (name, threshold) in enumerate(fitted.thresholds.items()):
        label = f"best {name} from {number_text(round(threshold, 3))}"
        axes.axvline(threshold, color=INK, linewidth=1.1, linestyle=style_of(index).dash, label=label)
    if fitted.yes is not None:
        axes.legend(loc="lower left", bbox_to_anchor=(0, 1.02), ncols=2, fontsize=7)
    axes.set_xlabel("score of the model")
    axes.set_ylabel("pairs")


def _thresholds(axes: Axes, fitted: Fitted, yes: npt.NDArray[np.bool_]) -> None:
    """Draw what each observed score would give as a threshold; ``yes`` says which pairs are one ``(n,)``."""
    thresholds, index_of_pair, counts = np.unique(fitted.scores, return_inverse=True, return_counts=True)
    # From the highest score down, as the pairs above a threshold count.
    called = counts[::-1].cumsum()[::-1].astype(np.float64)
    hits = np.bincount(index_of_pair, weights=yes.astype(np.float64))[::-1].cumsum()[::-1]
    precision = hits / called
    axes.fill_between(
        thresholds,
        share_lower_bound(hits, called),
        precision,
        step="pre",
        color=style_of(0).colour,
        alpha=0.2,
        linewidth=0,
    )
    curves = {
        "precision: right, of the pairs called a yes": precision,
        "recall: found, of the pairs that are a yes": hits / yes.sum(),
        "share of the pairs called a yes": called / len(yes),
    }
    for number, (name, shares) in enumerate(curves.items()):
        style = style_of(number)
        axes.step(thresholds, shares, where="pre", color=style.colour, linestyle=style.dash, linewidth=1.5, label=name)
    if fitted.used is not None:
        label = f"threshold used: {number_text(round(fitted.used, 3))}"
        axes.axvline(fitted.used, color=INK, linewidth=1.1, label=label)
    axes.set_ylim(-0.03, 1.03)
    axes.yaxis.set_major_formatter(lambda share, _: f"{100 * share:.0f} %")
    axes.set_xlabel("threshold")
    axes.set_title("what does a threshold give?")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.24), ncols=2, frameon=False, fontsize=8)


def _points(axes: Axes, values: Scores, labels: Scores, style: Style, name: str) -> None:
    bins = reliability(values, labels)
    half = 1.96 * bins.deviations / np.sqrt(bins.counts)
    axes.errorbar(
        bins.values,
        bins.labels,
        half,
        fmt=style.marker,
        color=style.colour,
        markersize=4.5,
        linewidth=1,
        label=name,
    )


def _is_probability(fitted: Fitted) -> bool:
    return fitted.scale == (0, 1) and bool(np.isin(fitted.labels, (0, 1)).all())


def _margins(scale: tuple[float, float]) -> tuple[float, float]:
    edge = 0.04 * (scale[1] - scale[0])
    return scale[0] - edge, scale[1] + edge
