"""What every reader of a document file returns: its title, and its text as blocks in reading order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from samesense.errors import DataError

LONGEST_TEXT = 32 * 2**20
"""Characters of the text of one document: what is longer is refused, so that a small file cannot fill the memory."""

BlockKind = Literal["text", "heading", "row", "code"]
"""Running text, a heading, one row of a table, or lines that are no sentences."""


@dataclass(frozen=True)
class Block:
    """One heading, paragraph, item of a list, row of a table, or piece of code.

    Attributes:
        text: its text, without markup.
        kind: see :data:`BlockKind`.
        level: of a heading, from 1; 0 for anything else.
        line: number of its first line in the file, from 1, where the format has lines.
        page: number of its page, from 1, where the format has pages.
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
        title: title that the file has, or that of its first heading; empty without either.
        remark: what was not read of it, for a message; empty if all was read.
    """

    blocks: list[Block]
    title: str = ""
    remark: str = ""


def check_length(characters: int, name: str) -> None:
    """Raise DataError for the text of a document that is longer than :data:`LONGEST_TEXT`."""
    if characters > LONGEST_TEXT:
        raise DataError(f"{name}: a document has at most {LONGEST_TEXT // 2**20} million characters. Split the file.")


def extracted(blocks: list[Block], name: str, *, title: str = "", remark: str = "") -> ExtractedText:
    """Return the text of a file, the first heading being its title unless there is another; DataError without text."""
    filled = [block for block in blocks if block.text.strip()]
    if not filled:
        raise DataError(f"{name}: the file holds no text.")
    headings = [block.text for block in filled if block.kind == "heading"]
    title = " ".join(title.split()) or next(iter(headings), "")
    return ExtractedText(filled, title, remark)
