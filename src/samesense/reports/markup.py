"""Build HTML from pieces; text is escaped, so it cannot become markup."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from html import escape

from samesense.reports.figures.plot import Plot, inline_svg


class Html(str):
    """Text that is already markup."""

    __slots__ = ()


def markup(value: object) -> Html:
    """Return markup as it is, and anything else as escaped text."""
    if isinstance(value, Html):
        return value
    return Html(escape(str(value)))


def element(name: str, *content: object, **attributes: str) -> Html:
    """Return an element. An attribute that is a Python keyword ends in ``_``; another ``_`` stands for a hyphen."""
    attribute_text = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(value)}"' for key, value in attributes.items() if value
    )
    return Html(f"<{name}{attribute_text}>{''.join(map(markup, content))}</{name}>")


def joined(pieces: Iterable[object]) -> Html:
    """Return pieces joined by line breaks."""
    return Html("\n".join(map(markup, pieces)))


def items(lines: Collection[object]) -> Html:
    """Return a list with an item a line; empty without lines."""
    return element("ul", *(element("li", line) for line in lines)) if lines else Html("")


LONG_CELL = 24
"""Cells of this many characters or more keep a minimum width on a narrow screen; the table scrolls instead."""


def table(header: Sequence[object], rows: Iterable[Sequence[object]], *, class_: str = "") -> Html:
    """Return a table that scrolls sideways if it is too wide; a cell may be a whole ``td`` element.

    The first cell of a row is its heading.
    """
    head = element("tr", *(element("th", cell, scope="col") for cell in header))
    body = []
    for first, *values in rows:
        cells = map(_cell, values)
        body.append(element("tr", element("th", first, scope="row"), *cells))
    whole = element("table", element("thead", head), element("tbody", joined(body)), class_=class_)
    # Focus lets a keyboard scroll it.
    return element("div", whole, class_="wide", tabindex="0", role="group", aria_label="table")


def _cell(value: object) -> Html:
    """Return a value as a cell of a table; a ``td`` element is returned as it is."""
    if isinstance(value, Html):
        if value.startswith("<td"):
            return value
        return element("td", value)
    text = str(value)
    return element("td", text, class_="long" if len(text) >= LONG_CELL else "")


def folded(title: object, *content: object) -> Html:
    """Return content that is folded under its title and opens on a click."""
    return element("details", element("summary", title), joined(content))


def by_screen(plots: Iterable[Plot]) -> Html:
    """Return a figure in two sizes, for wide and for narrow screens; a screen shows one of them."""
    return joined(
        element("div", figure(plot), class_=class_)
        for plot, class_ in zip(plots, ("for-desk", "for-phone"), strict=True)
    )


def figure(plot: Plot) -> Html:
    """Return a figure with its caption."""
    return element("figure", Html(inline_svg(plot, plot.name)), element("figcaption", plot.caption), tabindex="0")
