"""The page of a map of texts: a point a text, near for near texts, with the text on hover, by keyboard and by touch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files

import numpy as np

from samesense.reports.markup import Html, element, joined, table
from samesense.reports.page import document
from samesense.reports.tables import TitledTable
from samesense.types import Floats

SIDE = 1000
"""Units of the sides of a map."""

MARGIN = 30
"""Units around its points."""

LONGEST = 500
"""Characters of a text that the page holds."""

READING = (
    "Texts that lie close are close for the model. How far two groups are from each other, and how large they look, "
    "means nothing: t-SNE keeps near neighbours, and no distances."
)

KEYS = (
    "Point at a text, tap it, or reach the map with the Tab key: arrow keys go to the next text in their direction, "
    "Page Down and Page Up through all of them."
)


@dataclass(frozen=True)
class Category:
    """What points of one colour are.

    Attributes:
        name: what they are, in the legend.
        series: number of their colour among the series of all figures, from 1; ``None`` for the colour of what is less
            important.
        label: written on the map where these texts are, such as the number of a cluster.
        wide: whether points are so wide that they are seen under those of later categories.
    """

    name: str
    series: int | None = None
    label: str = ""
    wide: bool = False


@dataclass(frozen=True, kw_only=True)
class TextMap:
    """The content of the page of a map.

    Attributes:
        title: what is shown.
        lead: what one sees, in a sentence or two.
        notes: which texts are shown, and what else a reader must know.
        views: places of the texts ``(n, 2)`` by the name of what laid them out.
        texts: the texts ``(n,)``.
        details: a line about each text ``(n,)``.
        categories: what the colours mean.
        category_of: number of the category of each text ``(n,)``.
        group_of: number of the group of each text, which are shown together ``(n,)``; -1 for none.
        links: pairs of texts that a line joins.
        tables: the most important texts, in words.
    """

    title: str
    lead: str
    notes: Sequence[str]
    views: Mapping[str, Floats]
    texts: Sequence[str]
    details: Sequence[str]
    categories: Sequence[Category]
    category_of: Sequence[int]
    group_of: Sequence[int]
    links: Sequence[tuple[int, int]] = ()
    tables: Sequence[TitledTable] = field(default=())


def text_map_page(text_map: TextMap) -> str:
    """Lay out a map as one self-contained HTML page, the same for the same content."""
    notes = [*text_map.notes, READING]
    if any(len(text) > LONGEST for text in text_map.texts):
        notes.append(f"Of a text the page holds the first {LONGEST} characters.")
    pointed_text = element("p", KEYS, id="shown", role="status")
    body = joined(
        [
            element("h1", text_map.title),
            element("p", text_map.lead, class_="answer"),
            *(element("p", note, class_="note") for note in notes),
            _legend(text_map.categories),
            _finder(),
            element("div", *(_view(text_map, name) for name in text_map.views), pointed_text, class_="views"),
            *(_table(titled) for titled in text_map.tables),
        ]
    )
    return document(text_map.title, body, style=_file("text_map.css"), script=_file("text_map.js"))


def _legend(categories: Sequence[Category]) -> Html:
    items = []
    for category in categories:
        sample = element("path", class_=f"point {_look(category)}", d="M10 10h0")
        drawing = element("svg", sample, viewBox="0 0 20 20", aria_hidden="true")
        items.append(element("li", drawing, f"{category.label} {category.name}".strip()))
    return element("ul", *items, class_="legend")


def _finder() -> Html:
    label = element("label", "Find texts with ", for_="find")
    return element("p", label, Html('<input id="find" type="search" autocomplete="off">'), class_="finder")


def _view(text_map: TextMap, name: str) -> Html:
    """Return the map of one model: lines, points above them, and labels above all."""
    places = _fitted(text_map.views[name])
    lines = []
    for first, second in text_map.links:
        (x1, y1), (x2, y2) = places[first], places[second]
        group = str(text_map.group_of[first])
        lines.append(element("path", class_="link", d=f"M{x1} {y1}L{x2} {y2}", data_group=group))
    points = []
    # Those of later categories above the others; in every view in the same order, by which the script knows them.
    for number in sorted(range(len(places)), key=lambda index: text_map.category_of[index]):
        x, y = places[number]
        look = _look(text_map.categories[text_map.category_of[number]])
        # The line of details first: a text may have several lines.
        text = text_map.texts[number]
        shown = text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
        title = element("title", f"{text_map.details[number]}\n{shown}")
        group = str(text_map.group_of[number])
        points.append(element("path", title, class_=f"point {look}", d=f"M{x} {y}h0", data_group=group))
    drawing = element(
        "svg",
        *[joined([*lines, *points, *_labels(text_map, places)])],
        viewBox=f"0 0 {SIDE} {SIDE}",
        role="img",
        aria_label=f"{len(points)} texts by {name}",
    )
    caption = element("figcaption", name) if len(text_map.views) > 1 else ""
    frame = element(
        "div", drawing, class_="map", tabindex="0", role="group", aria_label=f"Map of texts by {name}; {KEYS}"
    )
    return element("figure", caption, frame)


def _fitted(places: Floats) -> list[tuple[str, str]]:
    """Return places moved and scaled, alike in both directions, into the square of the map, as text."""
    low = places.min(axis=0)
    high = places.max(axis=0)
    span = float((high - low).max())
    scale = (SIDE - 2 * MARGIN) / span if span else 0.0
    fitted = (places - (low + high) / 2) * scale + SIDE / 2
    return [(f"{x:.1f}", f"{y:.1f}") for x, y in fitted.tolist()]


def _labels(text_map: TextMap, places: Sequence[tuple[str, str]]) -> list[Html]:
    """Return the labels of the categories, each at the text in the middle of its category."""
    positions = np.array(places, dtype=np.float64)
    labels = []
    for number, category in enumerate(text_map.categories):
        members = positions[np.array(text_map.category_of) == number]
        if category.label and len(members):
            # At a text, as the middle may lie between two groups.
            x, y = members[np.abs(members - np.median(members, axis=0)).sum(axis=1).argmin()]
            labels.append(element("text", category.label, x=f"{x:.1f}", y=f"{y:.1f}"))
    return labels


def _look(category: Category) -> str:
    """Return the class of a category's points, which has their colour, shape and size."""
    series = f"series-{category.series or 0}"
    return f"{series} wide" if category.wide else series


def _table(titled: TitledTable) -> Html:
    return joined([element("h2", titled.title), table(titled.header, titled.rows)])


def _file(name: str) -> str:
    return files("samesense.reports").joinpath(name).read_text(encoding="utf-8")
