"""Pieces of HTML: what is put in as text cannot become markup."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from samesense.reports.figures.plot import Plot, inline_svg


class Html(str):
    """Text that is markup already."""

    __slots__ = ()


def markup(value: object) -> Html:
    """Return markup as it is, and anything else as escaped text."""
    return value if isinstance(value, Html) else Html(escape(str(value)))


def element(name: str, *content: object, **attributes: str) -> Html:
    """Return an element; attribute names may end in ``_`` where Python has the word."""
    given = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items() if value)
    return Html(f"<{name}{given}>{''.join(map(markup, content))}</{name}>")


def joined(parts: Iterable[object]) -> Html:
    """Return pieces one after another, each on a line."""
    return Html("\n".join(map(markup, parts)))


LONG_CELL = 24
"""Characters from which a cell keeps some width on a narrow screen, where the table scrolls instead."""


def table(header: Sequence[object], rows: Iterable[Sequence[object]], *, class_: str = "") -> Html:
    """Return a table that scrolls sideways where it is too wide; a cell may be a whole ``td`` element.

    The first cell of a row is its heading.
    """
    head = element("tr", *(element("th", cell, scope="col") for cell in header))
    body = []
    for first, *rest in rows:
        cells = map(_cell, rest)
        body.append(element("tr", element("th", first, scope="row"), *cells))
    whole = element("table", element("thead", head), element("tbody", joined(body)), class_=class_)
    return element("div", whole, class_="wide")


def _cell(value: object) -> Html:
    """Return a cell of a table, or the whole ``td`` element that was given."""
    if isinstance(value, Html):
        return value if value.startswith("<td") else element("td", value)
    text = str(value)
    return element("td", text, class_="long" if len(text) >= LONG_CELL else "")


def folded(title: object, *content: object) -> Html:
    """Return content that opens on a click on its title."""
    return element("details", element("summary", title), joined(content))


def by_screen(plots: Iterable[Plot]) -> Html:
    """Return a figure in two sizes, for wide and for narrow screens, of which a reader sees one."""
    return joined(
        element("div", figure(plot), class_=class_)
        for plot, class_ in zip(plots, ("for-desk", "for-phone"), strict=True)
    )


def figure(plot: Plot) -> Html:
    """Return a figure with its caption."""
    return element("figure", Html(inline_svg(plot, plot.name)), element("figcaption", plot.caption))
