"""Documents from JSON lines: sections in order, each a list of sentences."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Any

from samesense.data.documents.triplets import Document
from samesense.data.formats.files import Row, read_rows, split_suffix
from samesense.errors import DataError

LINES = (".jsonl", ".ndjson")
"""Endings of files that can hold documents; each may be followed by ``.gz``."""


def holds_documents(source: str | Path) -> bool:
    """Return whether a file is one of JSON lines whose first object has ``sections``."""
    if split_suffix(Path(source).name)[0] not in LINES:
        return False
    return any("sections" in cells for _, cells in islice(read_rows(source), 1))


def read_documents(source: str | Path) -> list[Document]:
    """Read documents, one JSON object a line: ``{"sections": [{"sentences": ["...", ...]}, ...]}``, other keys ignored.

    Args:
        source: a file that ends in ``.jsonl`` or ``.ndjson``, plain or gzipped.

    Returns:
        The documents in order.

    Raises:
        DataError: if the file cannot be read, holds no document, or a line is none (the line is named).
    """
    documents = [_document(source, row) for row in read_rows(source)]
    if not documents:
        raise DataError(f"{source} holds no document. Each line must be one JSON object with sections.")
    return documents


def _document(source: str | Path, row: Row) -> Document:
    number, cells = row
    sections = cells.get("sections")
    if isinstance(sections, list):
        found: list[Any] = [section.get("sentences") if isinstance(section, dict) else section for section in sections]
        if all(isinstance(part, list) and all(isinstance(text, str) for text in part) for part in found):
            return found
    raise DataError(
        f"{source}, row {number}: a document is an object whose sections are a list, each with a list of sentences; "
        f"received {str(cells)[:80]!r}."
    )
