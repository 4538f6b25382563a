"""Reads HTML files with lxml: the visible text without navigation, scripts and styles. Nothing is fetched."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import Any

from samesense.data.extraction.blocks import LONGEST_TEXT, Block, ExtractedText, check_length, extracted
from samesense.data.rows.encodings import encoding_of, wide_encoding
from samesense.data.rows.table_options import current_options
from samesense.errors import DataError
from samesense.failures import imported

SKIPPED = frozenset(
    "script style template noscript head nav aside footer iframe object svg canvas audio video select button dialog "
    "map".split()
)
"""Elements whose text is not read: it is not part of the document, or the same on every page of a site.

``header`` and ``form`` are read, because a header often has the title of an article, and a form may wrap a whole page.
"""

_SKIPPED_ROLES = ("navigation", "search", "dialog", "alert")

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_INLINE = frozenset(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i img ins kbd label mark q rp rt ruby s samp small "
    "span strike strong sub sup time tt u var wbr".split()
)
_CELLS = ("td", "th")
_META_CHARSET = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_.:-]{2,40})", re.IGNORECASE)
# HTML asks for the declaration within the first 1,024 bytes; some pages have it later.
_HEAD_BYTES = 4096


def read_html(path: Path, name: str) -> ExtractedText:
    """Read an HTML file."""
    # With at most four bytes per character, such a file is too long in any case.
    if path.stat().st_size > 4 * LONGEST_TEXT:
        check_length(path.stat().st_size, name)
    content = decode_html(path.read_bytes(), name)
    check_length(len(content), name)
    root = _parse(content, name)
    if root is None:
        return extracted([], name, title="")
    title = ""
    if titles := root.xpath("//head//title"):
        title = "".join(titles[0].itertext())
    return extracted(_Blocks().of(root), name, title=title)


def html_blocks(content: str, name: str = "HTML") -> list[Block]:
    """Return the blocks of a piece of HTML."""
    root = _parse(content, name)
    if root is None:
        return []
    return _Blocks().of(root)


def decode_html(content: bytes, name: str) -> str:
    """Return the text of an HTML file, decoded by its byte order mark, as UTF-8, or by its ``meta`` or the option.

    DataError if the bytes do not fit any of these.
    """
    encoding = _encoding(content)
    try:
        text = content.decode(encoding or "utf-8")
    except (UnicodeDecodeError, LookupError) as error:
        raise DataError(
            f"{name}: the encoding is not known: it is no UTF-8, and names no other that it is in ({error}). Give "
            "`encoding`, such as cp1252, or save the file as UTF-8."
        ) from error
    if "\0" in text:
        raise DataError(f"{name}: this is no HTML, for it holds NUL characters.")
    return text.removeprefix("\ufeff")


def _encoding(content: bytes) -> str:
    # A byte order mark and valid UTF-8 are more reliable than what the page declares.
    wide = wide_encoding(content[:_HEAD_BYTES])
    if wide or content.startswith(codecs.BOM_UTF8):
        return wide or "utf-8-sig"
    try:
        content.decode()
    except UnicodeDecodeError:
        declared = _META_CHARSET.search(content[:_HEAD_BYTES])
        if declared:
            return declared[1].decode("ascii")
        return current_options("encoding").encoding or encoding_of(content[: 2**16])
    return "utf-8"


def _parse(content: str, name: str) -> Any:
    """Return the root element of a page, ``None`` for an empty page; DataError if it is nested too deeply."""
    etree = imported("lxml.etree", "documents")
    parser = etree.HTMLParser(encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = etree.HTML(content.encode("utf-8", "replace"), parser)
    except etree.LxmlError as error:
        raise DataError(f"{name}: this HTML cannot be parsed ({error}).") from error
    # libxml2 leaves out what is deeper, and only logs it.
    if any("xcessive depth" in entry.message for entry in parser.error_log):
        raise DataError(f"{name}: elements are nested more than 255 deep. Save the page again.")
    return root


class _Blocks:
    """Collects blocks while the tree is traversed; the text between two boundaries of block elements is a block."""

    def __init__(self) -> None:
        self.blocks: list[Block] = []
        self._pieces: list[str] = []
        self._level = 0
        self._cells: list[str] | None = None
        self._code = False

    def of(self, root: Any) -> list[Block]:
        self._walk(root)
        self._end()
        return self.blocks

    def _walk(self, element: Any) -> None:
        # The tag of comments and processing instructions is a function; they are skipped like scripts.
        tag = element.tag if isinstance(element.tag, str) else "script"
        if not _is_hidden(element, tag):
            self._open(tag)
            self._add(element.text)
            for child in element:  # the recursion is at most 255 deep, see _parse
                self._walk(child)
                self._add(child.tail)
            self._close(tag)

    def _open(self, tag: str) -> None:
        if tag in _INLINE:
            return
        if tag == "br":
            self._pieces.append("\n")
            return
        # Block elements inside a table row do not end the row.
        if self._cells is None:
            self._end()
        if tag in _HEADINGS:
            self._level = _HEADINGS[tag]
        elif tag == "tr":
            self._cells = []
        self._code = self._code or tag == "pre"

    def _close(self, tag: str) -> None:
        if tag in _INLINE or tag == "br":
            return
        if tag in _CELLS and self._cells is not None:
            self._cells.append(_line(self._taken()))
        elif tag == "tr" and self._cells is not None:
            cells = [*self._cells, _line(self._taken())]
            self._cells = None
            self.blocks.append(Block(" | ".join(cell for cell in cells if cell), "row"))
        elif self._cells is None:
            self._end()
        else:
            self._pieces.append(" ")
        if tag in _HEADINGS:
            self._level = 0
        # Only the end of pre ends code: it may hold other elements.
        self._code = self._code and tag != "pre"

    def _add(self, text: str | None) -> None:
        if not text:
            return
        if not self._code:
            text = re.sub(r"\s+", " ", text)
        self._pieces.append(text)

    def _taken(self) -> str:
        text = "".join(self._pieces)
        self._pieces = []
        return text

    def _end(self) -> None:
        text = self._taken()
        if self._code:
            self.blocks.append(Block(text.strip("\n"), "code"))
        elif self._level:
            self.blocks.append(Block(_line(text), "heading", self._level))
        else:
            lines = (_line(line) for line in text.split("\n"))
            self.blocks.append(Block("\n".join(line for line in lines if line)))


def _line(text: str) -> str:
    return " ".join(text.split())


def _is_hidden(element: Any, tag: str) -> bool:
    style = (element.get("style") or "").replace(" ", "").lower()
    skipped = tag in SKIPPED or element.get("role") in _SKIPPED_ROLES
    return skipped or element.get("hidden") is not None or "display:none" in style
