"""The alignment-uniformity plane: are equals close, and is the space used?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from samesense.errors import DataError
from samesense.reports.figures.names import shown_name, write_names
from samesense.reports.figures.plot import INK, Plot, Style, new_figure, style_of, styled


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
        write_names(axes, _by_text(places))
        axes.set(xlabel="uniformity (smaller: more spread out)", ylabel="alignment (smaller: equals closer)")
    caption = f"Alignment and uniformity of each model on {dataset}; nearer to the lower left corner is better."
    return Plot(name, caption, figure)


def _by_text(places: Sequence[ModelPoint]) -> dict[str, list[tuple[float, float]]]:
    """Return the places of each model under its name and its note."""
    found: dict[str, list[tuple[float, float]]] = {}
    texts = {place.model: f"{shown_name(place.model)}  {place.note}".strip() for place in reversed(places)}
    for place in places:
        found.setdefault(texts[place.model], []).append((place.uniformity, place.alignment))
    return found
