"""Word files, by mammoth, which makes HTML of them: headings, lists, tables, footnotes. Nothing is fetched."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from samesense.data.extraction.blocks import ExtractedText, extracted
from samesense.data.extraction.html import html_blocks
from samesense.errors import DataError, MissingExtraError
from samesense.failures import described, imported

LARGEST_XML = 48 * 2**20
"""Bytes of all XML in a Word file, unpacked: some 10,000 pages. The reader holds it all, and many times as much."""

_OLD_WORD = b"\xd0\xcf\x11\xe0"


def read_docx(path: Path, name: str) -> ExtractedText:
    """Read a Word file; DataError for one that is damaged, encrypted, or unpacks to more than :data:`LARGEST_XML`."""
    mammoth = imported("mammoth", "documents")
    title = _checked(path, name)
    try:
        with path.open("rb") as stream:
            result = mammoth.convert_to_html(stream, convert_image=_no_image(mammoth), external_file_access=False)
        blocks = html_blocks(result.value, name)
    except (DataError, MissingExtraError):
        raise
    except (Exception, RecursionError) as error:
        raise DataError(f"{name}: this Word file is damaged and cannot be read ({described(error)}).") from error
    return extracted(blocks, name, title=title)


def _no_image(mammoth: Any) -> Any:
    """Return what makes an image of nothing, so that none is unpacked or opened."""
    return mammoth.images.img_element(lambda image: {"src": ""})


def _checked(path: Path, name: str) -> str:
    """Return the title of a Word file; DataError if it is none, or is too large unpacked.

    The sizes are those that the archive names, and zipfile unpacks no more than it names.
    """
    with path.open("rb") as stream:
        start = stream.read(4)
    if start == _OLD_WORD:
        raise DataError(f"{name}: it has a password, or is of Word before 2007. Save it as plain .docx.")
    try:
        with ZipFile(path) as archive:
            size = sum(member.file_size for member in archive.infolist() if member.filename.endswith((".xml", ".rels")))
            if size > LARGEST_XML:
                raise DataError(
                    f"{name}: a Word file unpacks to at most {LARGEST_XML // 2**20} MB of markup, and this one to "
                    f"{size / 2**20:,.0f}. Split it."
                )
            return _title(archive)
    except (BadZipFile, OSError, NotImplementedError, RuntimeError, ValueError, EOFError) as error:
        raise DataError(f"{name}: this is no Word file (.docx), or it is damaged ({described(error)}).") from error


def _title(archive: ZipFile) -> str:
    """Return the title in the properties of the file, empty without one; entities are not expanded."""
    etree = imported("lxml.etree", "documents")
    if "docProps/core.xml" not in archive.namelist():
        return ""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    try:
        root = etree.fromstring(archive.read("docProps/core.xml"), parser)
    except etree.LxmlError:
        return ""
    title = root.findtext("{http://purl.org/dc/elements/1.1/}title")
    return title or ""
