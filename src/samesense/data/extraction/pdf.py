"""Reads PDF files with pypdf, which limits the unpacked size of a stream. Images are not read."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from samesense.data.extraction.blocks import Block, ExtractedText, check_length, extracted
from samesense.errors import DataError, MissingExtraError
from samesense.failures import abridged, described, imported

MOST_PAGES = 20_000
"""Most pages of a file; a small file can list the same page any number of times."""

_HYPHEN = re.compile(
    r"(?<=[^\W\d_])(?:\u00ad|-)\n(?=(?!und\b|oder\b|bzw\b|and\b|or\b|et\b|ou\b|y\b|o\b)[^\W\d_A-ZÄÖÜ])"
)
"""A word hyphenated at the end of a line, but not a suspended hyphen, as in ``pre-\\nand postwar``."""

_PARAGRAPH = re.compile(r"\n[^\S\n]*\n\s*")


def read_pdf(path: Path, name: str) -> ExtractedText:
    """Read the text of a PDF page by page; DataError if it is damaged, has a password, or has only images."""
    with _pdf_errors(name):
        reader = _open_pdf(path, name)
        blocks, empty = _pages(reader, name)
        title = _title(reader)
        count = len(reader.pages)
    if not blocks:
        raise DataError(
            f"{name}: none of {count} pages holds text; are they scanned? Add a layer of text first, as ocrmypdf does."
        )
    remark = ""
    if empty:
        remark = f"{len(empty)} of {count} pages hold no text ({abridged(empty, 5)}); are they scanned?"
    return extracted(blocks, name, title=title, remark=remark)


def _open_pdf(path: Path, name: str) -> Any:
    pypdf = imported("pypdf", "documents")
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it warns of every defect that it repairs
    reader = pypdf.PdfReader(path)
    if reader.is_encrypted and not _opens_without_password(reader):
        raise DataError(f"{name}: the PDF has a password. Save it without one.")
    if len(reader.pages) > MOST_PAGES:
        raise DataError(f"{name}: a PDF has at most {MOST_PAGES} pages, and this one {len(reader.pages)}. Split it.")
    return reader


def _opens_without_password(reader: Any) -> bool:
    try:
        return bool(reader.decrypt(""))
    except Exception as error:  # an unknown algorithm, or one that needs the package cryptography
        raise DataError(
            f"it is encrypted ({described(error)}). Install that package, or save it unencrypted"
        ) from error


def _pages(reader: Any, name: str) -> tuple[list[Block], list[int]]:
    """Return the blocks of all pages, and the numbers of the pages without text."""
    blocks: list[Block] = []
    empty: list[int] = []
    characters = 0
    for number, page in enumerate(reader.pages, 1):
        text = page.extract_text() or ""
        characters += len(text)
        check_length(characters, name)
        # Join words that are hyphenated at line ends; some PDFs also contain NULs.
        text = _HYPHEN.sub("", text.replace("\r\n", "\n").replace("\0", ""))
        paragraphs = [" ".join(paragraph.split()) for paragraph in _PARAGRAPH.split(text) if paragraph.strip()]
        blocks += [Block(paragraph, page=number) for paragraph in paragraphs]
        if not paragraphs:
            empty.append(number)
    return blocks, empty


def _title(reader: Any) -> str:
    metadata = reader.metadata
    title = metadata.title if metadata is not None else ""
    if isinstance(title, str):
        return title
    return ""


@contextmanager
def _pdf_errors(name: str) -> Iterator[None]:
    """Turn any exception that the reader raises for a damaged file into a DataError."""
    try:
        yield
    except DataError as error:
        if str(error).startswith(name):
            raise
        raise DataError(f"{name}: {error}.") from error
    except MissingExtraError:
        raise
    except (Exception, RecursionError) as error:
        raise DataError(f"{name}: this PDF is damaged and cannot be read ({described(error)}).") from error
