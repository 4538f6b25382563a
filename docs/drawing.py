"""Drawing primitives of the pictures: text, boxes, arrows and matrices on a background, as SVG.

Used by ``docs/pictures.py``. Colours are those of the figures of a report, on light and on dark ground.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from html import escape

from samesense.reports.figures.plot import DARK, LIGHT, SERIES, SERIES_ON_DARK

WIDTH, SHOWN, EDGE = 480, 560, 15
"""Units across a picture, pixels across it where there is room, and units of its empty border."""

Point = tuple[float, float]
Look = Callable[[int, int], str]


def colours(ground: dict[str, str], series: Sequence[str]) -> str:
    """Return the rules of the style that depend on whether the reader prefers a light or a dark page."""
    ink, muted, grid, blank = (ground[name] for name in ("ink", "muted", "grid", "ground"))
    rules = [f"text{{fill:{ink}}}.muted{{fill:{muted}}}.page{{fill:{blank};stroke:{grid}}}.rule{{stroke:{grid}}}"]
    for look, colour in (("plain", muted), ("open", muted), ("pull", series[0]), ("push", series[1])):
        rules.append(f".{look}{{stroke:{colour}}}.tip-{look}{{fill:{colour}}}rect.{look}{{fill:{colour}}}")
    marks = f".dot.ours{{fill:{series[0]};stroke:{series[0]}}}.dot.rival{{fill:{muted};stroke:{blank}}}"
    return "".join([*rules, f".dot{{fill:{blank};stroke:{ink}}}.full{{fill:{ink}}}{marks}"])


STYLE = (
    "text{font:14px system-ui,sans-serif}.bold{font-weight:bold}.small,.muted{font-size:13px}.sub{font-size:11px}"
    "path{fill:none;stroke-width:2}rect,circle{stroke-width:1.5}rect{fill-opacity:.12}rect.page{fill-opacity:1}"
    "path.plain,.rule{stroke-width:1.2}.push,.open{stroke-dasharray:5 3}"
    "rect.plain,rect.open{fill-opacity:.05}rect.mid{fill-opacity:.2}rect.dark{fill-opacity:.45}"
    f"{colours(LIGHT, SERIES)}@media (prefers-color-scheme:dark){{{colours(DARK, SERIES_ON_DARK)}}}"
)


class Picture:
    """Shapes and words on a background of its own, so that it is legible on any page."""

    def __init__(self, title: str, height: int) -> None:
        self.title = title
        self.height = height
        self.shapes = list[str]()

    def text(self, x: float, y: float, words: str, look: str = "", anchor: str = "start", room: float = 0) -> None:
        """Write a line, ``s_a`` as s with a subscript; ValueError if it is wider than ``room``, or the picture."""
        sides = {"start": WIDTH - EDGE / 2 - x, "end": x - EDGE / 2, "middle": 2 * min(x, WIDTH - x) - EDGE}
        size = (13 if "small" in look or "muted" in look else 14) * (0.64 if "bold" in look else 0.57)
        if len(words.replace("_", "")) * size > (room or sides[anchor]):
            raise ValueError(f"{self.title}: no room for {words!r}.")
        first, *marked = re.split(r"_(\w)", escape(words, quote=False))
        for low, after in zip(marked[::2], marked[1::2], strict=True):
            first += f'<tspan class="sub" dy="4">{low}</tspan><tspan dy="-4">{after}</tspan>'
        style = f' class="{look}"' if look else ""
        self.shapes.append(f'<text x="{x:g}" y="{y:g}"{style} text-anchor="{anchor}">{first}</text>')

    def box(self, x: float, y: float, width: float, height: float, *lines: str, look: str = "plain") -> None:
        """Draw a box with lines in its middle; those after the first are small."""
        self.shapes.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="4" class="{look}"/>')
        for number, words in enumerate(lines):
            middle = y + height / 2 + 5 + 18 * (number - (len(lines) - 1) / 2)
            self.text(x + width / 2, middle, words, "small" if number else "", "middle", room=width - 6)

    def line(self, start: Point, end: Point, *, look: str = "plain", tip: bool = True, bend: float = 0) -> None:
        """Draw a line with a tip at its end, or an arc ``bend`` high; below the line where that is negative."""
        (x, y), (to_x, to_y) = start, end
        course = (
            f"Q{(x + to_x) / 2:g} {(y + to_y) / 2 - 2 * bend:g} {to_x:g} {to_y:g}" if bend else f"L{to_x:g} {to_y:g}"
        )
        marker = f' marker-end="url(#{look})"' if tip else ""
        self.shapes.append(f'<path d="M{x:g} {y:g}{course}" class="{look}"{marker}/>')

    def rule(self, y: float) -> None:
        """Draw a horizontal rule."""
        self.shapes.append(f'<path d="M{EDGE} {y:g}H{WIDTH - EDGE}" class="rule"/>')

    def dot(self, x: float, y: float, words: str = "", radius: float = 11, look: str = "") -> None:
        """Draw a circle with a word in it."""
        self.shapes.append(f'<circle cx="{x:g}" cy="{y:g}" r="{radius:g}" class="{f"dot {look}".strip()}"/>')
        if words:
            self.text(x, y + 5, words, "bold", "middle", room=2 * radius)

    def grid(self, x: float, y: float, cell: float, rows: Sequence[Sequence[str]], look: Look) -> None:
        """Draw a matrix of square cells; ``look(row, column)`` returns the style of each."""
        for row, values in enumerate(rows):
            for column, value in enumerate(values):
                corner = (x + cell * column, y + cell * row, cell - 4, cell - 4)
                self.box(*corner, *([value] if value else []), look=look(row, column))

    def legend(self, y: float, pull: str, push: str, *, tip: bool = False) -> None:
        """Draw the legend of the two kinds of lines."""
        for level, words, look in ((y, pull, "pull"), (y + 22, push, "push")):
            self.line((EDGE, level), (EDGE + 36, level), look=look, tip=tip)
            self.text(EDGE + 46, level + 5, words, "small")

    def formula(self, y: float, *lines: str) -> None:
        """Draw a box over the whole width, with a formula and what its letters mean."""
        self.box(EDGE, y, WIDTH - 2 * EDGE, 22 + 18 * len(lines), *lines)

    def svg(self) -> str:
        """Return the SVG file."""
        height = self.height * SHOWN / WIDTH
        tip = "M0 0L8 4L0 8z"
        tips = "".join(
            f'<marker id="{look}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" '
            f'markerUnits="userSpaceOnUse" orient="auto"><path d="{tip}" class="tip-{look}"/></marker>'
            for look in ("plain", "pull", "push")
        )
        head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {self.height}" width="{SHOWN}"'
        ground = f'<rect x="1" y="1" width="{WIDTH - 2}" height="{self.height - 2}" rx="6" class="page"/>'
        start = f'{head} height="{height:g}" role="img">\n<title>{self.title}</title>\n<style>{STYLE}</style>'
        return "\n".join([start, f"<defs>{tips}</defs>", ground, *self.shapes, "</svg>"]) + "\n"
