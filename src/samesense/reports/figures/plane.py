"""The alignment-uniformity plane: are equals close, and is the space used?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from samesense.errors import DataError
from samesense.reports.figures.names import shown_name, write_names
from samesense.reports.figures.plot import INK, Plot, Style, new_figure, style_of, styled


@dataclass(frozen=True)
class ModelPoint:
    """The alignment and uniformity of a model."""

    model: str
    alignment: float  # mean squared distance of equals
    uniformity: float  # logarithm of the mean Gaussian potential of all
    note: str = ""  # written after the name, such as its average on STS


def plane(points: Sequence[ModelPoint], *, styles: Mapping[str, Style], dataset: str, name: str = "plane") -> Plot:
    """Draw models by uniformity (across) and alignment (up), each with its name; lower left is better.

    A point is a model, or one seed of it; the label stands at the mean of its seeds.

    Source: figures of this kind are Fig. 4 of Liu et al. 2023 (RankCSE); quantities of Wang and Isola 2020.
    Differs: the quality of a model is written beside it rather than shown by colour.
    """
    if not points:
        raise DataError("The alignment-uniformity plane needs one model or more.")
    with styled():
        figure = new_figure(7.6, 4.4)
        axes = figure.subplots()
        for point in points:
            style = styles.get(point.model, style_of(0))
            axes.plot(
                [point.uniformity],
                [point.alignment],
                style.marker,
                color=style.colour,
                markersize=9,
                markeredgecolor=INK,
                markeredgewidth=0.8,
            )
        axes.margins(x=0.16, y=0.14)
        write_names(axes, _by_text(points))
        axes.set(xlabel="uniformity (smaller: more spread out)", ylabel="alignment (smaller: equals closer)")
    caption = f"Alignment and uniformity of each model on {dataset}; nearer to the lower left corner is better."
    return Plot(name, caption, figure)


def _by_text(points: Sequence[ModelPoint]) -> dict[str, list[tuple[float, float]]]:
    """Return the coordinates of each model, by its name and note."""
    coordinates: dict[str, list[tuple[float, float]]] = {}
    texts = {point.model: f"{shown_name(point.model)}  {point.note}".strip() for point in reversed(points)}
    for point in points:
        coordinates.setdefault(texts[point.model], []).append((point.uniformity, point.alignment))
    return coordinates
