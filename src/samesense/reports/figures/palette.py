"""Colours, markers and hatches: told apart by the colour-blind, in print, on light and on dark ground.

A figure is drawn once, in the light colours below. Each of them occurs nowhere else, so that a page can put a CSS
variable in its place and follow the reader's preference for light or dark.

Source: Okabe and Ito (2008), "Color universal design", for the series on light ground, less yellow and black.
"""

from __future__ import annotations

from dataclasses import dataclass

INK = "#1b1c1e"
MUTED = "#5f636b"
GRID = "#d3d6db"
GROUND = "#fdfdfc"

SERIES = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7b7f87")
SERIES_ON_DARK = ("#4aa3e0", "#f0782e", "#2fbf95", "#e29cc4", "#f2b632", "#9bd8fb", "#a3a7af")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
HATCHES = ("", "////", "....", "\\\\\\\\", "xxxx", "----", "++++")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 2)), (0, (2, 1)))

LIGHT = {"ink": INK, "muted": MUTED, "grid": GRID, "ground": GROUND}
DARK = {"ink": "#e8e9eb", "muted": "#a3a7af", "grid": "#3d4148", "ground": "#16181b"}


@dataclass(frozen=True)
class Style:
    """How one series is drawn wherever it occurs."""

    colour: str
    marker: str
    hatch: str
    dash: str | tuple[int, tuple[int, ...]]


def style_of(index: int) -> Style:
    """Return the look of the series with this index; no two of the first 49 are alike."""
    colour, shape = index % len(SERIES), (index + index // len(SERIES)) % len(SERIES)
    return Style(SERIES[colour], MARKERS[shape], HATCHES[shape], DASHES[shape])


def variables() -> dict[str, tuple[str, str, str]]:
    """Return for each CSS variable the drawn colour, and its values on light and on dark ground."""
    found = {f"--{name}": (LIGHT[name], LIGHT[name], DARK[name]) for name in LIGHT}
    for number, (light, dark) in enumerate(zip(SERIES, SERIES_ON_DARK, strict=True), 1):
        found[f"--series-{number}"] = (light, light, dark)
    return found
