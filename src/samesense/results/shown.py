"""Results that show themselves: briefly in a console, whole by ``print`` and in a notebook."""

from __future__ import annotations

from html import escape
from importlib import import_module
from typing import Any

from samesense.errors import MissingExtraError
from samesense.results.tables import dict_table, html_table, text_columns, text_table

REPR_LINES = 4
"""Lines of a result in a console; ``print`` shows all of it."""


REPR_LENGTH = 300
"""Characters of a result in a console."""


SHOWN_ROWS = 10
"""Rows of a long table that a notebook shows."""


class Shown:
    """A result that shows itself: briefly in a console, whole by ``print`` and in a notebook."""

    def __repr__(self) -> str:
        """Return the first lines of what ``print`` shows, and how many there are."""
        lines = str(self).splitlines() or [""]
        brief = lines[:REPR_LINES]
        while len(brief) > 1 and sum(map(len, brief)) > REPR_LENGTH:
            brief.pop()
        brief = [line[:REPR_LENGTH] for line in brief]
        if len(brief) < len(lines):
            brief.append(f"... {len(lines) - len(brief)} more lines: print it")
        name = type(self).__name__
        if len(brief) == 1:
            return f"<{name}: {brief[0]}>"
        return "\n".join([f"<{name}>", *brief])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


class ShownRows(Shown):
    """A result that has rows: a table in a notebook, and dictionaries or a data frame for programs."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row as a dictionary of plain JSON types."""
        raise NotImplementedError

    def to_pandas(self) -> Any:
        """Return a ``pandas.DataFrame`` with the rows of :meth:`to_dicts`.

        Raises:
            MissingExtraError: if pandas is not installed.
        """
        return import_pandas().DataFrame(self.to_dicts())

    def _first_dicts(self, count: int) -> tuple[list[dict[str, Any]], int]:
        """Return the first rows, and how many there are."""
        rows = self.to_dicts()
        return rows[:count], len(rows)

    def table(self, rows: int = SHOWN_ROWS) -> str:
        """Return the first rows as aligned plain text, and how many more there are."""
        first, total = self._first_dicts(rows)
        if not first:
            return ""
        ellipsis = []
        if total > len(first):
            ellipsis.append(f"... {total - len(first):,} more rows")
        return "\n".join([text_table(*dict_table(first), left=text_columns(first)), *ellipsis])

    def _repr_html_(self) -> str:
        first, total = self._first_dicts(SHOWN_ROWS)
        drawn = html_table(*dict_table(first), left=text_columns(first)) if first else ""
        title = str(self).partition("\n")[0]
        return f"<p>{escape(title)}</p>\n{drawn}" + (f"\n<p>{total:,} rows</p>" if total > len(first) else "")


class Markdown(Shown, str):
    """Tables in Markdown: a text, which a console does not show whole."""

    def __str__(self) -> str:
        return str.__str__(self)


class RowList(ShownRows, list[Any]):
    """A list of results that each are a row; it prints as a table. A list in all else."""

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return each row as a dictionary of the fields of its class."""
        return [_fields_of(row) for row in self]

    def __str__(self) -> str:
        if not self:
            return "none"
        return self.table(rows=len(self))

    def _repr_html_(self) -> str:
        first = self.to_dicts()[:SHOWN_ROWS]
        if not first:
            return "<p>none</p>"
        return html_table(*dict_table(first), left=text_columns(first))


def _fields_of(row: Any) -> dict[str, Any]:
    if hasattr(row, "_asdict"):
        return dict(row._asdict())
    return dict(vars(row))


def import_pandas() -> Any:
    """Return pandas; MissingExtraError if it is not installed."""
    try:
        return import_module("pandas")
    except ImportError as error:
        raise MissingExtraError("pandas", "train") from error
