"""Check the queries of a collection and the number of hits."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from samesense.choices import check_count
from samesense.errors import DataError
from samesense.inference.models.model import as_sequence


def checked_queries(texts: Iterable[str], top: int) -> tuple[list[str], int]:
    """Return the queries as a list and the number of hits; DataError or ConfigError if they are invalid."""
    if isinstance(texts, str):
        raise DataError(f"Queries are given in a list; received {texts[:60]!r}. Write [{texts[:60]!r}].")
    count = min(check_count("top", top), sys.maxsize)  # SQLite's integers end at maxsize
    queries = list(as_sequence(texts, "Queries"))
    for number, text in enumerate(queries, 1):
        if not isinstance(text, str) or not text.strip():
            value = "empty" if isinstance(text, str) else repr(text)[:60]
            raise DataError(f"A query must hold a text; query {number} is {value}.")
    return queries, count
