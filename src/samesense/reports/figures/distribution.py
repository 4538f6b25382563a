"""Distribution of a model's similarities within each rating: do they rise with it, and do ratings overlap?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from samesense.data.conventions.numbers import number_text
from samesense.data.conventions.scales import infer_scale
from samesense.errors import DataError
from samesense.reports.figures.names import LETTER, broken
from samesense.reports.figures.plot import INK, Plot, Style, new_figure, style_of, styled
from samesense.types import Evidence, Scores

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BANDS = 5
"""Number of bands of equal width into which a scale of many values is divided."""

FEWEST = 8
"""With fewer pairs than this in a group, each pair is drawn as a dot."""

PANELS = 4
"""Most panels side by side."""

PANEL = 2.8
"""Width of a panel in inches."""

NARROW = 2.3
"""Width of a narrow panel in inches; two side by side are legible on a phone."""

Groups = list[tuple[str, npt.NDArray[np.intp]]]


def label_texts(labels: Scores) -> dict[float, str]:
    """Return each distinct label ``(n,)`` as text: ``no`` and ``yes`` where 0 and 1 are all there are."""
    distinct = np.unique(labels).tolist()
    yes_no = {0.0: "no", 1.0: "yes"}
    if set(distinct) <= set(yes_no):
        return {value: yes_no[value] for value in distinct}
    return {value: number_text(value) for value in distinct}


def rating_groups(labels: Scores) -> Groups:
    """Group pairs by their rating ``(n,)``: one group per value if there are at most six, else fifths of the scale.

    The scale is inferred from the ratings, or else their range. The upper end of a fifth belongs to the next one,
    except for the last. Ratings outside the scale go to its first or last fifth. Returns the groups that are not
    empty, in ascending order.
    """
    distinct = np.unique(labels)
    if len(distinct) <= BANDS + 1:
        return [(text, np.flatnonzero(labels == value)) for value, text in label_texts(labels).items()]
    low, high = infer_scale(labels.tolist()) or (float(distinct[0]), float(distinct[-1]))
    edges = np.linspace(low, high, BANDS + 1)
    band = np.clip(np.searchsorted(edges, labels, side="right") - 1, 0, BANDS - 1)
    names = [f"{number_text(a)}-{number_text(b)}" for a, b in pairwise(edges)]
    return [(names[index], np.flatnonzero(band == index)) for index in range(BANDS) if (band == index).any()]


def distribution(evidence: Sequence[Evidence], *, styles: Mapping[str, Style], name: str, panel: float = PANEL) -> Plot:
    """Draw the scores of each rating group, one panel per model, ``panel`` inches wide.

    Source: figures of this kind are Fig. 5 of Liu et al. 2023 (RankCSE) and Fig. 5 of Huang et al. 2024 (CoSENT).
    """
    if not evidence or any(model_evidence.labels is None for model_evidence in evidence):
        raise DataError("A distribution by rating needs scores with labels, of one model or more.")
    with styled():
        lines = -(-len(evidence) // PANELS)
        columns = -(-len(evidence) // lines)
        alike = all(np.abs(model_evidence.values).max() <= 1 for model_evidence in evidence)
        titles = [broken(model_evidence.model, round((panel - 0.5) * 72 / LETTER)) for model_evidence in evidence]
        figure = new_figure(max(4.2, panel * columns), (2.75 + 0.15 * max(map(_lines, titles))) * lines)
        panels = figure.subplots(lines, columns, squeeze=False, sharey=alike, sharex=False).ravel()
        for axes, model_evidence, title in zip(panels, evidence, titles, strict=False):
            _panel(axes, model_evidence, styles.get(model_evidence.model, style_of(0)))
            axes.set_title(title)
        for axes in panels[len(evidence) :]:
            axes.remove()
        for axes in panels[: len(evidence) : columns]:
            axes.set_ylabel("similarity")
        figure.supxlabel("label (number of pairs)", fontsize=9.5)
    caption = (
        f"{evidence[0].dataset}: distribution of similarities within each rating group. Width shows density, the bar "
        "the middle half, the dot the median; small groups are drawn as single pairs."
    )
    return Plot(name, caption, figure)


def _panel(axes: Axes, evidence: Evidence, style: Style) -> None:
    labels = np.asarray(evidence.labels)
    groups = rating_groups(labels)
    for position, (_, members) in enumerate(groups):
        values = evidence.values[members]
        if len(values) < FEWEST:
            axes.plot([position] * len(values), values, style.marker, color=style.colour, markersize=3)
            continue
        bodies = axes.violinplot([values], [position], widths=0.85, showextrema=False, points=60)["bodies"]
        for body in bodies:  # type: ignore[attr-defined]
            body.set(facecolor=style.colour, edgecolor=style.colour, alpha=0.55, linewidth=0.8)
        low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
        axes.plot([position, position], [low, high], color=INK, linewidth=2.2, solid_capstyle="butt")
        axes.plot([position], [middle], "o", color=INK, markersize=3.6)
    axes.set_xticks(range(len(groups)), [f"{label}\n({len(members)})" for label, members in groups])
    axes.tick_params(axis="x", labelsize=8)
    axes.grid(False, axis="x")


def _lines(text: str) -> int:
    return 1 + text.count("\n")
