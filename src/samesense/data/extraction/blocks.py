"""The result of every document reader: the title, and the text as blocks in reading order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from samesense.errors import DataError

LONGEST_TEXT = 32 * 2**20
"""Most characters of a document's text, so that a small file cannot expand until memory is full."""

BlockKind = Literal["text", "heading", "row", "code"]
"""Running text, a heading, a table row, or lines of code."""


@dataclass(frozen=True)
class Block:
    """One heading, paragraph, item of a list, row of a table, or piece of code.

    Attributes:
        text: its text, without markup.
        kind: see :data:`BlockKind`.
        level: level of a heading, from 1; 0 for other blocks.
        line: number of its first line in the file, from 1, if the format has lines.
        page: number of its page, from 1, if the format has pages.
    """

    text: str
    kind: BlockKind = "text"
    level: int = 0
    line: int | None = None
    page: int | None = None


@dataclass(frozen=True)
class ExtractedText:
    """The text of one file.

    Attributes:
        blocks: headings, paragraphs and so on, in reading order, none of them blank.
        title: title of the file, or else its first heading; empty without either.
        remark: a message about content that was not read; empty if all was read.
    """

    blocks: list[Block]
    title: str = ""
    remark: str = ""


def check_length(characters: int, name: str) -> None:
    """Raise DataError if the text of a document is longer than :data:`LONGEST_TEXT`."""
    if characters > LONGEST_TEXT:
        raise DataError(f"{name}: a document has at most {LONGEST_TEXT // 2**20} million characters. Split the file.")


def extracted(blocks: list[Block], name: str, *, title: str = "", remark: str = "") -> ExtractedText:
    """Return the extracted text; the first heading is the title if there is no other. DataError if there is no text."""
    filled = [block for block in blocks if block.text.strip()]
    if not filled:
        raise DataError(f"{name}: the file holds no text.")
    headings = [block.text for block in filled if block.kind == "heading"]
    # Titles in metadata may be blank, or hold line breaks.
    title = " ".join(title.split()) or next(iter(headings), "")
    return ExtractedText(filled, title, remark)
