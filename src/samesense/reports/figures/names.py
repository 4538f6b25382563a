"""Labels beside points, placed so that they overlap neither marks nor each other."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from samesense.reports.figures.plot import MUTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZE = 9.5
"""Font size in points."""

MARK = 5.5
"""Half the width of a mark, in points."""

LINE = 13.0
"""Height of a line, in points."""

LETTER = 5.7
"""Width of a letter, in points."""

LONGEST_NAME = 42
"""Longest name that figures show in full, in letters."""

FIRST_WIDE = 0x2E80
"""Characters from this code point on (CJK) are as wide as two letters."""

Box = tuple[float, float, float, float]
"""Left, lower, right and upper edge, in points."""

Point = tuple[float, float]


def write_names(
    axes: Axes, points_by_text: Mapping[str, Sequence[Point]], bars: Iterable[tuple[Point, Point]] = ()
) -> None:
    """Write each text beside the mean of its points, off the ``bars``, which are lines along an axis, end to end.

    Points and bars are in data units. Call this when the axes have their final limits.
    """
    figure = axes.get_figure()
    assert figure is not None  # noqa: S101 - for the type checker: axes of a figure
    figure.draw_without_rendering()  # type: ignore[union-attr]
    scale = 72 / figure.dpi

    def in_points(points: Sequence[Point]) -> npt.NDArray[np.float64]:
        return np.asarray(axes.transData.transform(points)) * scale

    taken = [
        (x - MARK, y - MARK, x + MARK, y + MARK)
        for text_points in points_by_text.values()
        for x, y in in_points(text_points)
    ]
    for bar in bars:
        ends = in_points(bar)
        x_low, y_low = ends.min(axis=0) - 1.5
        x_high, y_high = ends.max(axis=0) + 1.5
        taken.append((x_low, y_low, x_high, y_high))
    left = axes.bbox.x0 * scale
    right = axes.bbox.x1 * scale
    for text, text_points in points_by_text.items():
        x, y = in_points(text_points).mean(axis=0)
        box = _free_box(text, x, y, taken, (left, right))
        taken.append(box)
        leftwards = box[0] < x
        shift = (box[1] + box[3]) / 2 - y
        middle = axes.transData.inverted().transform((x / scale, y / scale))
        pull = -2 * MARK if leftwards else 2 * MARK
        arrow = None
        if abs(shift) > LINE:  # a name away from its point is joined to it by a line
            arrow = {"arrowstyle": "-", "color": MUTED, "linewidth": 0.6}
        axes.annotate(  # left out of the layout, which would make room for it and move every point
            text,
            (float(middle[0]), float(middle[1])),
            (pull, shift),
            textcoords="offset points",
            va="center",
            ha="right" if leftwards else "left",
            fontsize=SIZE,
            arrowprops=arrow,
        ).set_in_layout(False)


def _free_box(text: str, x: float, y: float, taken: Sequence[Box], limits: tuple[float, float]) -> Box:
    """Return the box of a text beside a point that overlaps the fewest boxes, the nearest of equally good ones.

    Candidates lie right or left of the point, and up to 14 lines above or below it.
    """
    width = LETTER * letters(text)
    boxes = [
        (start, y + shift - LINE / 2, start + width, y + shift + LINE / 2)
        for shift in sorted(np.arange(-14, 15) * LINE, key=abs)
        for start in (x + 2 * MARK, x - 2 * MARK - width)
    ]
    inside = [box for box in boxes if box[0] >= limits[0] and box[2] <= limits[1]]
    return min(inside or boxes, key=lambda box: sum(_overlap(box, other_box) for other_box in taken))


def shown_name(name: str) -> str:
    """Return a name as figures show it: a long one without its middle, because names differ at their ends."""
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[: LONGEST_NAME // 3]}…{name[-2 * LONGEST_NAME // 3 :]}"


def broken(text: str, most: int) -> str:
    """Return a text wrapped to lines of at most ``most`` letters."""
    lines = [line for line in text.split("\n") if line]
    return "\n".join(textwrap.fill(line, most * len(line) // letters(line), break_on_hyphens=False) for line in lines)


def entry(name: str, most: int) -> str:
    """Return a legend entry, wrapped; matplotlib would leave out one that begins with an underscore."""
    return broken(f"\u200b{name}" if name.startswith("_") else name, most)


def letters(text: str) -> int:
    """Return the width of a text in letters."""
    return sum(2 if ord(sign) > FIRST_WIDE else 1 for sign in text)


def _overlap(first: Box, second: Box) -> bool:
    return first[0] < second[2] and second[0] < first[2] and first[1] < second[3] and second[1] < first[3]
