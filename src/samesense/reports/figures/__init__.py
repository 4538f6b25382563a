"""Figures of a report; matplotlib is loaded when one is drawn."""

from __future__ import annotations

from samesense.reports.figures.calibration import Fitted, calibration
from samesense.reports.figures.curves import Curve, learning_curves, sweep
from samesense.reports.figures.distribution import distribution
from samesense.reports.figures.drawing import (
    Drawing,
    check_figure,
    inline_svg,
    save_drawing,
    save_drawings,
    svg_text,
)
from samesense.reports.figures.heatmap import TOPICS, heatmap
from samesense.reports.figures.palette import Look, look
from samesense.reports.figures.plane import Place, plane

__all__ = [
    "TOPICS",
    "Curve",
    "Drawing",
    "Fitted",
    "Look",
    "Place",
    "calibration",
    "check_figure",
    "distribution",
    "heatmap",
    "inline_svg",
    "learning_curves",
    "look",
    "plane",
    "save_drawing",
    "save_drawings",
    "svg_text",
    "sweep",
]
