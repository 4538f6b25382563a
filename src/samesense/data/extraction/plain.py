"""Reads plain text files, and decodes the lines of the other text formats."""

from __future__ import annotations

import codecs
import re
from functools import partial
from pathlib import Path

from samesense.data.extraction.blocks import Block, ExtractedText, check_length, extracted
from samesense.data.rows.compression import open_decompressed, read_errors, split_suffix
from samesense.data.rows.encodings import CHUNK
from samesense.data.rows.table_options import current_options, table_options
from samesense.data.rows.text import read_lines

_LINE_END = re.compile(r"\r\n|[\r\n]")


def read_plain_text(path: Path, name: str) -> ExtractedText:
    """Read a text file; blank lines separate its paragraphs."""
    blocks: list[Block] = []
    lines: list[str] = []
    # The empty line ends the last paragraph.
    for number, line in enumerate([*text_lines(path), ""], 1):
        if line.strip():
            lines.append(line.strip())
        elif lines:
            blocks.append(Block("\n".join(lines), line=number - len(lines)))
            lines = []
    return extracted(blocks, name)


def text_lines(path: Path) -> list[str]:
    """Return the lines of a text file without line ends, decoded by the same rules as all text files.

    The option ``encoding`` applies only to files that are not UTF-8, because a folder may have both. DataError if the
    file is not text, or too long.
    """
    if current_options("encoding").encoding is not None and _is_utf8(path):
        with table_options():
            return _lines(path)
    return _lines(path)


def _lines(path: Path) -> list[str]:
    characters = 0
    pieces = []
    for _, line in read_lines(path, carriage_returns=True):
        characters += len(line)
        check_length(characters, str(path))
        pieces.append(line)
    return _LINE_END.split("".join(pieces))


def _is_utf8(path: Path) -> bool:
    """Return whether a file, decompressed, is UTF-8; true for an unreadable file, whose error is raised later."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open_decompressed(path) as stream:
            for block in iter(partial(stream.read, CHUNK), b""):
                decoder.decode(block)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    except read_errors(split_suffix(str(path)).packing):
        return True
    return True
