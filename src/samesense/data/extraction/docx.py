"""Reads Word files with mammoth, which converts headings, lists, tables and footnotes to HTML. Nothing is fetched."""

from __future__ import annotations

from pathlib import Path
from zipfile import BadZipFile, ZipFile

from samesense.data.extraction.blocks import ExtractedText, extracted
from samesense.data.extraction.html import html_blocks
from samesense.errors import DataError, MissingExtraError
from samesense.failures import described, imported

LARGEST_XML = 48 * 2**20
"""Most bytes of unpacked XML in a Word file, about 10,000 pages; the reader needs many times as much memory."""

_OLD_WORD = b"\xd0\xcf\x11\xe0"


def read_docx(path: Path, name: str) -> ExtractedText:
    """Read a Word file; DataError for one that is damaged, encrypted, or unpacks to more than :data:`LARGEST_XML`."""
    mammoth = imported("mammoth", "documents")
    title = _check_and_read_title(path, name)
    # Drops images, so that none is unpacked or opened.
    no_image = mammoth.images.img_element(lambda image: {"src": ""})
    try:
        with path.open("rb") as stream:
            result = mammoth.convert_to_html(stream, convert_image=no_image, external_file_access=False)
        blocks = html_blocks(result.value, name)
    except (DataError, MissingExtraError):
        raise
    except (Exception, RecursionError) as error:
        raise DataError(f"{name}: this Word file is damaged and cannot be read ({described(error)}).") from error
    return extracted(blocks, name, title=title)


def _check_and_read_title(path: Path, name: str) -> str:
    """Return the title of a Word file; DataError if it is not a Word file, or too large when unpacked.

    The sizes are those that the archive declares; zipfile never unpacks more than that.
    """
    with path.open("rb") as stream:
        start = stream.read(4)
    # Both the old binary format and encrypted .docx files are OLE containers.
    if start == _OLD_WORD:
        raise DataError(f"{name}: it has a password, or is of Word before 2007. Save it as plain .docx.")
    try:
        with ZipFile(path) as archive:
            # Pictures are not unpacked, and may be large.
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
    """Return the title in the file's properties, empty without one; XML entities are not expanded."""
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
