"""The alignment-uniformity plane: are equals close, and is the space used?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from samesense.errors import DataError
from samesense.reports.figures.plot import INK, MUTED, Plot, Style, new_figure, style_of, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MARK, LINE, LETTER = 5.5, 13.0, 6.0
"""Half the width of a mark, the height of a line, and the width of a letter, in points."""

MARGINAL = 0x2E80
"""Signs from here on are as wide as two letters."""

Box = tuple[float, float, float, float]
"""Left, lower, right and upper end, in points."""


@dataclass(frozen=True)
class ModelPoint:
    """Where a model lies."""

    model: str
    alignment: float  # mean squared distance of equals
    uniformity: float  # logarithm of the mean Gaussian potential of all
    note: str = ""  # more to say behind the name, such as its average on STS


def plane(places: Sequence[ModelPoint], *, styles: Mapping[str, Style], dataset: str, name: str = "plane") -> Plot:
    """Draw models by uniformity (across) and alignment (up), each with its name; lower left is better.

    A place is that of a model, or of one seed of it; the label then stands at the mean.

    Source: figures of this kind are Fig. 4 of Liu et al. 2023 (RankCSE); quantities of Wang and Isola 2020.
    Differs: the quality of a model is written beside it rather than shown by colour.
    """
    if not places:
        raise DataError("The alignment-uniformity plane needs one model or more.")
    with styled():
        figure = new_figure(7.6, 4.4)
        axes = figure.subplots()
        for place in places:
            own = styles.get(place.model, style_of(0))
            axes.plot(
                [place.uniformity], [place.alignment], own.marker, color=own.colour, markersize=9,
                markeredgecolor=INK, markeredgewidth=0.8,
            )  # fmt: skip
        axes.margins(x=0.16, y=0.14)
        _write_names(axes, places)
        axes.set(xlabel="uniformity (smaller: more spread out)", ylabel="alignment (smaller: equals closer)")
    caption = f"Alignment and uniformity of each model on {dataset}; nearer to the lower left corner is better."
    return Plot(name, caption, figure)


def _write_names(axes: Axes, places: Sequence[ModelPoint]) -> None:
    """Write each model's name beside the mean of its places, where it meets neither a mark nor another name."""
    figure = axes.get_figure()
    assert figure is not None  # noqa: S101 - for the type checker: axes of a figure
    figure.draw_without_rendering()  # type: ignore[union-attr]
    points = axes.transData.transform([(place.uniformity, place.alignment) for place in places])
    points = points * 72 / figure.dpi
    taken = [(x - MARK, y - MARK, x + MARK, y + MARK) for x, y in points]
    right = axes.bbox.x1 * 72 / figure.dpi
    for name in dict.fromkeys(place.model for place in places):
        own = [at for at, place in enumerate(places) if place.model == name]
        x, y = points[own].mean(axis=0)
        text = f"{name}  {places[own[0]].note}".strip()
        width = LETTER * sum(2 if ord(sign) > MARGINAL else 1 for sign in text)
        boxes = [
            (start, y + shift - LINE / 2, start + width, y + shift + LINE / 2)
            for shift in sorted(np.arange(-8, 9) * LINE, key=abs)
            for start in (x + 2 * MARK, x - 2 * MARK - width)
        ]
        free = [box for box in boxes if box[0] >= 0 and box[2] <= right and not any(_meet(box, t) for t in taken)]
        box = free[0] if free else boxes[0]
        taken.append(box)
        leftwards = box[0] < x
        shift = (box[1] + box[3]) / 2 - y
        axes.annotate(
            text, (_middle([places[at].uniformity for at in own]), _middle([places[at].alignment for at in own])),
            (-2 * MARK if leftwards else 2 * MARK, shift), textcoords="offset points", va="center",
            ha="right" if leftwards else "left",
            arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.6} if abs(shift) > LINE else None,
        )  # fmt: skip


def _meet(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _middle(values: Sequence[float]) -> float:
    return float(np.mean(values))
