"""Reads Markdown files (CommonMark with tables) with markdown-it-py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from samesense.data.extraction.blocks import Block, ExtractedText, extracted
from samesense.data.extraction.html import html_blocks
from samesense.data.extraction.plain import text_lines
from samesense.failures import imported

DEEPEST = 100
"""Most levels of nested lists, quotes and markup that are read."""


def read_markdown(path: Path, name: str) -> ExtractedText:
    """Read a Markdown file; of the front matter only the title is read."""
    lines = text_lines(path)
    front = _front_matter(lines)
    text = "\n".join([*[""] * front, *lines[front:]])  # blank lines preserve the line numbers
    parser = imported("markdown_it", "documents").MarkdownIt("commonmark", {"maxNesting": DEEPEST})
    # CommonMark has neither, and most files are written for GitHub.
    parser.enable(["table", "strikethrough"])
    return extracted(_blocks(parser.parse(text)), name, title=_title(lines[:front]))


def _front_matter(lines: Sequence[str]) -> int:
    """Return the number of lines of front matter, which stands between two lines of three hyphens."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((number + 1 for number, line in enumerate(lines) if number and line.rstrip() in ("---", "...")), 0)


def _title(front_matter: Sequence[str]) -> str:
    for line in front_matter:
        key, colon, value = line.partition(":")
        if colon and key.strip().lower() == "title":
            return value.strip().strip("\"'")
    return ""


def _blocks(tokens: Sequence[Any]) -> list[Block]:
    blocks: list[Block] = []
    level = 0
    cells: list[str] | None = None
    line: int | None = None
    for token in tokens:
        if token.map:
            line = token.map[0] + 1
        if token.type == "heading_open":
            # The heading's text follows in the next inline token.
            level = int(token.tag[1:])
        elif token.type == "tr_open":
            cells = []
        elif token.type == "tr_close":
            blocks.append(Block(" | ".join(cells or []), "row", line=line))
            cells = None
        elif token.type == "inline" and cells is not None:
            cells.append(_inline_text(token))
        elif token.type == "inline":
            blocks.append(Block(_inline_text(token), "heading" if level else "text", level, line))
            level = 0
        elif token.type in ("fence", "code_block"):
            blocks.append(Block(token.content.rstrip(), "code", line=line))
        elif token.type == "html_block":
            blocks += [Block(block.text, block.kind, block.level, line) for block in html_blocks(token.content)]
    return blocks


def _inline_text(token: Any) -> str:
    """Return the text of a paragraph without markup, with the alternative text of images."""
    pieces = []
    for child in token.children or ():
        if child.type in ("softbreak", "hardbreak"):
            pieces.append("\n")
        # Tags within a paragraph are markup; the text between them is a child by itself.
        elif child.type != "html_inline":
            pieces.append(child.content)
    return "".join(pieces)
