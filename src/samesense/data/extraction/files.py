"""Finds document files in folders and by patterns, and reads each by its ending."""

from __future__ import annotations

import glob
import importlib.util
import os
import stat
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from samesense.data.extraction.blocks import ExtractedText
from samesense.data.extraction.docx import read_docx
from samesense.data.extraction.html import read_html
from samesense.data.extraction.markdown import read_markdown
from samesense.data.extraction.pdf import read_pdf
from samesense.data.extraction.plain import read_plain_text
from samesense.data.rows.compression import is_text_file, split_suffix
from samesense.data.rows.sources import leads_to
from samesense.errors import DataError, MissingExtraError
from samesense.failures import broken_link
from samesense.urls import is_url

MARKED_ENDINGS = (".md", ".markdown", ".html", ".htm", ".xhtml", ".pdf", ".docx")
"""Endings of documents other than ``.txt``, which may also be compressed."""

ENDINGS_IN_WORDS = ".txt, .md, .html, .pdf and .docx"

EXTRA = "documents"
"""The extra that installs the readers of all formats except ``.txt``."""


class _Format(NamedTuple):
    read: Callable[[Path, str], ExtractedText]
    modules: tuple[str, ...]


_HTML = _Format(read_html, ("lxml",))
_MARKDOWN = _Format(read_markdown, ("markdown_it", "lxml"))
_FORMATS = {
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".html": _HTML,
    ".htm": _HTML,
    ".xhtml": _HTML,
    ".pdf": _Format(read_pdf, ("pypdf",)),
    ".docx": _Format(read_docx, ("mammoth", "lxml")),
}
_TEXT = _Format(read_plain_text, ())

_SAVED_DATASETS = ("dataset_info.json", "dataset_dict.json", "state.json")
"""Files that mark a folder written by ``save_to_disk`` of ``datasets``."""


@dataclass(frozen=True)
class DocumentFile:
    """A document file.

    Attributes:
        path: path of the file.
        name: its path for display: the folder as the user wrote it, and the path inside it.
    """

    path: Path
    name: str


@dataclass
class DocumentFiles:
    """The documents in folders, patterns and files, and counts of the other files in these folders.

    Attributes:
        files: the documents without duplicates, those of a folder sorted by name.
        other_endings: number of files with other endings, by ending.
        hidden: number of files and folders whose names begin with a dot.
        links: number of links to folders that were not followed.
        unreadable: folders that cannot be listed, with the reason.
    """

    files: list[DocumentFile] = field(default_factory=list)
    other_endings: Counter[str] = field(default_factory=Counter)
    hidden: int = 0
    links: int = 0
    unreadable: list[str] = field(default_factory=list)

    @property
    def skips_files(self) -> bool:
        """Whether the folders hold files or links that are not read."""
        return bool(self.other_endings or self.hidden or self.links)

    @property
    def summary(self) -> str:
        """The number of documents, and of files that were skipped, as a line of text."""
        most_common = self.other_endings.most_common(5)
        skipped = [f"{count} {ending or 'without an ending'}" for ending, count in most_common]
        remaining = self.other_endings.total() - sum(count for _, count in most_common)
        if remaining:
            skipped.append(f"{remaining} others")
        if self.hidden:
            skipped.append(f"{self.hidden} hidden")
        if self.links:
            skipped.append(f"{self.links} links to folders")
        documents = f"{len(self.files):,} documents"
        if len(self.files) == 1:
            documents = "1 document"
        return documents + (f"; not read: {', '.join(skipped)}" if skipped else "")


def is_document_name(name: str) -> bool:
    """Return whether a name ends like a document: in ``.txt``, also compressed, or one of :data:`MARKED_ENDINGS`."""
    return is_text_file(name) or name.lower().endswith(MARKED_ENDINGS)


def holds_document_files(source: str | Path) -> bool:
    """Return whether a source is a folder with documents that was not saved by ``datasets``."""
    if not is_plain_folder(source):
        return False
    return next(_walk(Path(source).expanduser(), DocumentFiles()), None) is not None


def is_plain_folder(source: str | Path) -> bool:
    """Return whether a source is a folder that was not saved by ``datasets``."""
    if not leads_to(source, Path.is_dir):
        return False
    folder = Path(source).expanduser()
    return not any((folder / name).is_file() for name in _SAVED_DATASETS)


def is_pattern(source: str) -> bool:
    """Return whether a source is a glob pattern, such as ``docs/*.pdf``, and not an existing file of that name."""
    return glob.has_magic(source) and not is_url(source) and not leads_to(source, Path.exists)


def find_documents(sources: Sequence[str | Path], base: Path | None = None) -> DocumentFiles:
    """Find the documents in folders (at any depth), by glob patterns, and by file name.

    In folders, hidden files and files with other endings are skipped and counted, and links to folders are not
    followed.

    Args:
        sources: folders, patterns and files.
        base: folder that relative sources are in; by default the working directory.

    Raises:
        DataError: if a source is missing, a given file has another ending, or there are no documents.
    """
    documents = DocumentFiles()
    if base is None:
        base = Path()
    for source in sources:
        # A file may have a bracket or a question mark in its name.
        by_pattern = glob.has_magic(str(source)) and not leads_to(base / Path(source).expanduser(), Path.exists)
        names = [str(source)]
        if by_pattern:
            pattern = str(Path(source).expanduser())
            names = sorted(glob.glob(pattern, root_dir=base, recursive=True))  # noqa: PTH207 - it may be absolute
        if not names:
            raise DataError(
                f"{source}: no file has a name of this pattern. Check the spelling and the working directory."
            )
        for name in names:
            _add(documents, name, base, by_pattern=by_pattern)
    by_path: dict[str, DocumentFile] = {}
    for file in documents.files:
        # A file that is given twice, or by a link, is read once.
        by_path.setdefault(os.path.realpath(file.path), file)
    documents.files = list(by_path.values())
    if not documents.files:
        raise DataError(
            f"{', '.join(map(str, sources))}: there is no document, {ENDINGS_IN_WORDS} ({documents.summary}). Name "
            "another folder, or convert the files."
        )
    return documents


def check_readers(files: Sequence[DocumentFile]) -> None:
    """Raise MissingExtraError if the reader of one of these files is not installed."""
    for file in files:
        for module in _format(file.name).modules:
            if importlib.util.find_spec(module) is None:
                raise MissingExtraError(module, EXTRA)


def read_document_file(file: DocumentFile) -> ExtractedText:
    """Read the text of one file.

    Raises:
        DataError: if it is damaged, encrypted, empty, too large, or in an unknown encoding; the message begins with
            the name of the file.
        MissingExtraError: if its reader is not installed.
    """
    try:
        if not stat.S_ISREG(file.path.stat().st_mode):
            raise DataError(f"{file.name}: this is no regular file.")
        if file.path.stat().st_size == 0:
            raise DataError(f"{file.name}: the file is empty.")
        return _format(file.name).read(file.path, file.name)
    except (OSError, MemoryError) as error:
        if message := broken_link(file.path):
            raise DataError(message) from error
        raise DataError(f"{file.name}: the file cannot be read ({error}).") from error


def _format(name: str) -> _Format:
    return next((form for ending, form in _FORMATS.items() if name.lower().endswith(ending)), _TEXT)


def _add(documents: DocumentFiles, name: str, base: Path, *, by_pattern: bool) -> None:
    path = base / Path(name).expanduser()
    if leads_to(path, Path.is_dir):
        prefix = name.rstrip("/")
        # Sorted, because the order of a file system is arbitrary.
        for file in sorted(_walk(path, documents)):
            documents.files.append(DocumentFile(file, _displayable(f"{prefix}/{file.relative_to(path)}")))
    elif message := broken_link(path):
        raise DataError(message)
    elif not leads_to(path, Path.exists):
        raise DataError(f"{name}: there is no such file or folder. Check the spelling and the working directory.")
    elif is_document_name(name):
        documents.files.append(DocumentFile(path, _displayable(name)))
    # A pattern may match other files too; a file by name is meant.
    elif by_pattern:
        documents.other_endings[_ending(path.name)] += 1
    else:
        raise DataError(
            f"{name}: documents are {ENDINGS_IN_WORDS} files, recognised by their endings. Convert the file; a "
            "table is read alone, without documents beside it."
        )


def _walk(folder: Path, documents: DocumentFiles) -> Iterator[Path]:
    """Yield the documents in a folder at any depth; count the skipped files."""

    def on_error(error: OSError) -> None:
        documents.unreadable.append(f"{error.filename}: the folder cannot be listed ({error.strerror})")

    for root, folders, files in os.walk(folder, onerror=on_error):
        links = [name for name in folders if Path(root, name).is_symlink()]
        visible = [name for name in folders if not _is_hidden(name) and name not in links]
        documents.links += len(links)
        documents.hidden += sum(map(_is_hidden, [*set(folders).difference(links), *files]))
        # In place, so that os.walk does not descend into the other folders.
        folders[:] = visible
        for name in (name for name in files if not _is_hidden(name)):
            if is_document_name(name):
                yield Path(root, name)
            else:
                documents.other_endings[_ending(name)] += 1


def _is_hidden(name: str) -> bool:
    """Return whether a file is hidden, or the lock file that Word keeps beside an open document."""
    return name.startswith((".", "~$"))


def _ending(name: str) -> str:
    suffix, packing = split_suffix(name)
    return (suffix + packing if suffix else Path(name).suffix).lower()


def _displayable(name: str) -> str:
    """Return a file name as valid UTF-8; other bytes become a replacement character."""
    return os.fsencode(name).decode("utf-8", "replace").replace(os.sep, "/")
