"""Figures of a report; matplotlib is loaded when one is drawn."""

from __future__ import annotations

from samesense.reports.figures.calibration import Fitted, calibration
from samesense.reports.figures.curves import Curve, learning_curves, sweep
from samesense.reports.figures.distribution import distribution
from samesense.reports.figures.heatmap import TOPICS, heatmap
from samesense.reports.figures.palette import Style, style_of
from samesense.reports.figures.plane import ModelPoint, plane
from samesense.reports.figures.plot import (
    Plot,
    check_figure,
    inline_svg,
    save_plot,
    save_plots,
    svg_text,
)

__all__ = [
    "TOPICS",
    "Curve",
    "Fitted",
    "ModelPoint",
    "Plot",
    "Style",
    "calibration",
    "check_figure",
    "distribution",
    "heatmap",
    "inline_svg",
    "learning_curves",
    "plane",
    "save_plot",
    "save_plots",
    "style_of",
    "svg_text",
    "sweep",
]
