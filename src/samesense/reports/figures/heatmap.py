"""Similarity matrices of sentences, one panel per model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.failures import shorten_text
from samesense.reports.figures.plot import Plot, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

Groups = Sequence[Sequence[str]]

MOST_SENTENCES = 40
"""With more sentences the numbers in the cells would be illegible."""

SHOWN_CHARS = 46
"""Longest sentence that is shown in full, in characters."""


def heatmap(
    similarities: Mapping[str, npt.NDArray[np.float64]], groups: Groups, origin: str = "sentences by topic"
) -> Plot:
    """Draw a similarity matrix for each model, all on one colour scale, with the number in each cell.

    Similarities are ``(sentences, sentences)`` for each model; lines separate the groups. ``origin`` says in words what
    the sentences are.

    Source: figures of this kind are Fig. 2 of Dehghan and Amasyali 2022 (SupMPN).
    """
    sentences = [sentence for group in groups for sentence in group]
    _check(similarities, len(sentences))
    with styled():
        lowest = min(float(matrix.min()) for matrix in similarities.values())
        highest = max(float(matrix.max()) for matrix in similarities.values())
        columns = min(2, len(similarities))
        lines = -(-len(similarities) // columns)
        side = max(3.4, 0.31 * len(sentences))
        figure = new_figure(4.1 + side * columns, (side + 0.6) * lines)
        panels = figure.subplots(lines, columns, squeeze=False)
        for index, (model, matrix) in enumerate(similarities.items()):
            mesh = _panel(panels.flat[index], matrix, lowest, highest)
            panels.flat[index].set_title(model, pad=16)
            _label(panels.flat[index], sentences, groups, full=index % columns == 0)
        for panel in panels.flat[len(similarities) :]:
            panel.remove()
        bar = figure.colorbar(mesh, ax=figure.axes, shrink=0.6, label="similarity")
        if bar.solids is not None:
            bar.solids.set(rasterized=False, edgecolor="face")
        bar.outline.set_visible(False)
    caption = f"Similarities of {len(sentences)} sentences with each other, model by model: {origin}."
    return Plot("heatmap", caption, figure)


def _check(similarities: Mapping[str, npt.NDArray[np.float64]], size: int) -> None:
    if not similarities or not 2 <= size <= MOST_SENTENCES:
        raise DataError(
            f"A heatmap needs one model or more and 2 to {MOST_SENTENCES} sentences; got {len(similarities)} "
            f"and {size}."
        )


def _panel(axes: Axes, matrix: npt.NDArray[np.float64], lowest: float, highest: float) -> QuadMesh:
    size = len(matrix)
    mesh = axes.pcolormesh(matrix, cmap="cividis", vmin=lowest, vmax=highest, edgecolors="face", linewidth=0.3)
    for row in range(size):
        for column in range(size):
            value = float(matrix[row, column])
            dark = value - lowest < 0.55 * (highest - lowest)
            axes.text(
                column + 0.5,
                row + 0.5,
                f"{value:z.2f}".replace("0.", "."),
                ha="center",
                va="center",
                fontsize=6.5,
                color="#ffffff" if dark else "#000000",
            )
    return mesh


def _label(axes: Axes, sentences: Sequence[str], groups: Groups, *, full: bool) -> None:
    """Number the rows and columns, write out the sentences if ``full``, and draw lines between the groups."""
    centres = np.arange(len(sentences)) + 0.5
    numbers = [str(number) for number in range(1, len(sentences) + 1)]
    rows = numbers
    if full:
        lines = [shorten_text(" ".join(text.split()), SHOWN_CHARS) for text in sentences]
        rows = [f"{line}  {number}" for line, number in zip(lines, numbers, strict=True)]
    axes.set_xticks(centres, numbers)
    axes.set_yticks(centres, rows)
    axes.tick_params(labelsize=8, length=0, labeltop=True, labelbottom=False)
    axes.invert_yaxis()
    axes.set_aspect("equal")
    axes.grid(False)
    axes.spines[:].set_visible(False)
    for edge in np.cumsum([len(group) for group in groups])[:-1]:
        axes.axhline(edge, color="#ffffff", linewidth=2)
        axes.axvline(edge, color="#ffffff", linewidth=2)
