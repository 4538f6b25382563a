"""How a model's similarities are spread within each rating: do they move with the rating, and do ratings overlap?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from samesense.data.formats.labels import infer_scale, number_text
from samesense.errors import DataError
from samesense.reports.figures.names import LETTER, broken
from samesense.reports.figures.plot import INK, Plot, Style, new_figure, style_of, styled
from samesense.types import Evidence, Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BANDS = 5
"""Parts of equal width that a scale of many values is cut into."""

FEWEST = 8
"""With fewer pairs in a group, each is drawn as a dot."""

PANELS = 4
"""Panels side by side, at most."""

PANEL, NARROW = 2.8, 2.3
"""Widths of a panel in inches; two narrow ones are still read on a phone."""

Groups = list[tuple[str, npt.NDArray[np.intp]]]


def rating_groups(labels: Scores) -> Groups:
    """Group pairs by their rating: one group a value if there are at most six, else fifths of the scale.

    The scale is the one they are read on, or their own range. The upper end of a fifth belongs to
    the next one, except for the last. Ratings outside the scale go to its first or last fifth. Ratings are ``(n,)``.
    Groups that have members are returned, in ascending order.
    """
    distinct = np.unique(labels)
    if len(distinct) <= BANDS + 1:
        return [(number_text(value), np.flatnonzero(labels == value)) for value in distinct]
    low, high = infer_scale(labels.tolist()) or (float(distinct[0]), float(distinct[-1]))
    edges = np.linspace(low, high, BANDS + 1)
    band = np.clip(np.searchsorted(edges, labels, side="right") - 1, 0, BANDS - 1)
    names = [f"{number_text(a)}-{number_text(b)}" for a, b in pairwise(edges)]
    return [(names[at], np.flatnonzero(band == at)) for at in range(BANDS) if (band == at).any()]


def distribution(evidence: Sequence[Evidence], *, styles: Mapping[str, Style], name: str, panel: float = PANEL) -> Plot:
    """Draw the scores of each rating group, one panel a model, ``panel`` inches wide.

    Source: figures of this kind are Fig. 5 of Liu et al. 2023 (RankCSE) and Fig. 5 of Huang et al. 2024 (CoSENT).
    """
    if not evidence or any(one.labels is None for one in evidence):
        raise DataError("A distribution by rating needs scores with labels, of one model or more.")
    with styled():
        lines = -(-len(evidence) // PANELS)
        columns = -(-len(evidence) // lines)
        alike = all(np.abs(one.values).max() <= 1 for one in evidence)
        titles = [broken(one.model, round((panel - 0.5) * 72 / LETTER)) for one in evidence]
        figure = new_figure(max(4.2, panel * columns), (2.75 + 0.15 * max(map(_lines, titles))) * lines)
        panels = figure.subplots(lines, columns, squeeze=False, sharey=alike, sharex=False).ravel()
        for axes, one, title in zip(panels, evidence, titles, strict=False):
            _panel(axes, one, styles.get(one.model, style_of(0)))
            axes.set_title(title)
        for axes in panels[len(evidence) :]:
            axes.remove()
        for axes in panels[: len(evidence) : columns]:
            axes.set_ylabel("similarity")
        figure.supxlabel("rating (number of pairs)", fontsize=9.5)
    caption = (
        f"{evidence[0].dataset}: distribution of similarities within each rating group. Width shows density, the bar "
        "the middle half, the dot the median; small groups are drawn as single pairs."
    )
    return Plot(name, caption, figure)


def _panel(axes: Axes, evidence: Evidence, appearance: Style) -> None:
    labels = np.asarray(evidence.labels)
    groups = rating_groups(labels)
    for at, (_, members) in enumerate(groups):
        values = evidence.values[members]
        if len(values) < FEWEST:
            axes.plot([at] * len(values), values, appearance.marker, color=appearance.colour, markersize=3)
            continue
        bodies = axes.violinplot([values], [at], widths=0.85, showextrema=False, points=60)["bodies"]
        for body in bodies:  # type: ignore[attr-defined]
            body.set(facecolor=appearance.colour, edgecolor=appearance.colour, alpha=0.55, linewidth=0.8)
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        axes.plot([at, at], [low, high], color=INK, linewidth=2.2, solid_capstyle="butt")
        axes.plot([at], [middle], "o", color=INK, markersize=3.6)
    axes.set_xticks(range(len(groups)), [f"{label}\n({len(members)})" for label, members in groups])
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(False, axis="x")


def _lines(text: str) -> int:
    return 1 + text.count("\n")
