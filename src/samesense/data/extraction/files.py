"""Document files: found in folders and by patterns, and read by their endings."""

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
from samesense.data.formats.endings import is_text_file, split_suffix
from samesense.data.formats.files import leads_to
from samesense.errors import DataError, MissingExtraError
from samesense.urls import is_url

MARKED_ENDINGS = (".md", ".markdown", ".html", ".htm", ".xhtml", ".pdf", ".docx")
"""Endings of documents beside ``.txt``, which may also be compressed."""

ENDINGS_IN_WORDS = ".txt, .md, .html, .pdf and .docx"

EXTRA = "documents"
"""The extra that brings the readers of all formats but ``.txt``."""


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
"""Files of a folder that ``save_to_disk`` of ``datasets`` wrote."""


@dataclass(frozen=True)
class DocumentFile:
    """A file of a document.

    Attributes:
        path: where it is.
        name: the same as the user wrote it: the folder as given, and the path in it.
    """

    path: Path
    name: str


@dataclass
class DocumentFiles:
    """The documents of folders, patterns and files, and what else lies in these folders.

    Attributes:
        files: the documents, those of a folder by name; none comes twice.
        others: how many files have another ending, by ending.
        hidden: how many files and folders have names that begin with a dot.
        links: how many links to folders were not followed.
        unreadable: folders that cannot be listed, with the reason.
    """

    files: list[DocumentFile] = field(default_factory=list)
    others: Counter[str] = field(default_factory=Counter)
    hidden: int = 0
    links: int = 0
    unreadable: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """One line for people: what was found, and what was passed over."""
        passed = [f"{count} {ending or 'without an ending'}" for ending, count in self.others.most_common(5)]
        rest = self.others.total() - sum(count for _, count in self.others.most_common(5))
        passed += [f"{rest} others"] if rest else []
        passed += [f"{self.hidden} hidden"] if self.hidden else []
        passed += [f"{self.links} links to folders"] if self.links else []
        documents = "1 document" if len(self.files) == 1 else f"{len(self.files):,} documents"
        return documents + (f"; not read: {', '.join(passed)}" if passed else "")


def is_document_name(name: str) -> bool:
    """Return whether a name is that of a document: ``.txt``, also compressed, or one of :data:`MARKED_ENDINGS`."""
    return is_text_file(name) or name.lower().endswith(MARKED_ENDINGS)


def holds_document_files(source: str | Path) -> bool:
    """Return whether a source is a folder with documents in it, and none that ``datasets`` saved."""
    if not is_plain_folder(source):
        return False
    return next(_walk(Path(source).expanduser(), DocumentFiles()), None) is not None


def is_plain_folder(source: str | Path) -> bool:
    """Return whether a source is a folder, and none that ``datasets`` saved."""
    if not leads_to(source, Path.is_dir):
        return False
    folder = Path(source).expanduser()
    return not any((folder / name).is_file() for name in _SAVED_DATASETS)


def is_pattern(source: str) -> bool:
    """Return whether a source is a pattern of names, such as ``docs/*.pdf``, and no file of that name."""
    return glob.has_magic(source) and not is_url(source) and not leads_to(source, Path.exists)


def find_documents(sources: Sequence[str | Path], base: Path | None = None) -> DocumentFiles:
    """Find the documents in folders, however deep, by patterns, or named one by one.

    In folders, hidden files and other endings are passed over and counted, and links to folders are not followed.

    Args:
        sources: folders, patterns and files.
        base: folder that relative sources are in; by default the working directory.

    Raises:
        DataError: if a source is not there, a file that is named has another ending, or no document is found.
    """
    found = DocumentFiles()
    base = Path() if base is None else base
    for source in sources:
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
            _add(found, name, base, by_pattern=by_pattern)
    by_path: dict[str, DocumentFile] = {}
    for file in found.files:
        by_path.setdefault(os.path.realpath(file.path), file)
    found.files = list(by_path.values())
    if not found.files:
        raise DataError(
            f"{', '.join(map(str, sources))}: there is no document, {ENDINGS_IN_WORDS} ({found.summary}). Name another "
            "folder, or convert the files."
        )
    return found


def check_readers(files: Sequence[DocumentFile]) -> None:
    """Raise MissingExtraError if the reader of one of these files is not installed."""
    for file in files:
        for module in _format(file.name).modules:
            if importlib.util.find_spec(module) is None:
                raise MissingExtraError(module, EXTRA)


def read_document_file(file: DocumentFile) -> ExtractedText:
    """Read the text of one file.

    Raises:
        DataError: if it is damaged, encrypted, empty, too large, or in an unknown encoding; the message begins with its
            name.
        MissingExtraError: if its reader is not installed.
    """
    try:
        if not stat.S_ISREG(file.path.stat().st_mode):
            raise DataError(f"{file.name}: this is no regular file.")
        if file.path.stat().st_size == 0:
            raise DataError(f"{file.name}: the file is empty.")
        return _format(file.name).read(file.path, file.name)
    except (OSError, MemoryError) as error:
        raise DataError(f"{file.name}: the file cannot be read ({error}).") from error


def _format(name: str) -> _Format:
    return next((form for ending, form in _FORMATS.items() if name.lower().endswith(ending)), _TEXT)


def _add(found: DocumentFiles, name: str, base: Path, *, by_pattern: bool) -> None:
    path = base / Path(name).expanduser()
    if leads_to(path, Path.is_dir):
        prefix = name.rstrip("/")
        for file in sorted(_walk(path, found)):
            found.files.append(DocumentFile(file, _shown(f"{prefix}/{file.relative_to(path)}")))
    elif not leads_to(path, Path.exists):
        raise DataError(f"{name}: there is no such file or folder. Check the spelling and the working directory.")
    elif is_document_name(name):
        found.files.append(DocumentFile(path, _shown(name)))
    elif by_pattern:
        found.others[_ending(path.name)] += 1
    else:
        raise DataError(
            f"{name}: documents are {ENDINGS_IN_WORDS} files, told by their endings. Convert the file; a table is read "
            "alone, without documents beside it."
        )


def _walk(folder: Path, found: DocumentFiles) -> Iterator[Path]:
    """Yield the documents of a folder, however deep; count what is passed over."""

    def on_error(error: OSError) -> None:
        found.unreadable.append(f"{error.filename}: the folder cannot be listed ({error.strerror})")

    for root, folders, files in os.walk(folder, onerror=on_error):
        links = [name for name in folders if Path(root, name).is_symlink()]
        visible = [name for name in folders if not _is_hidden(name) and name not in links]
        found.links += len(links)
        found.hidden += sum(map(_is_hidden, [*set(folders).difference(links), *files]))
        folders[:] = visible
        for name in (name for name in files if not _is_hidden(name)):
            if is_document_name(name):
                yield Path(root, name)
            else:
                found.others[_ending(name)] += 1


def _is_hidden(name: str) -> bool:
    """Return whether a name is hidden, or that of what Word keeps beside a file that is open."""
    return name.startswith((".", "~$"))


def _ending(name: str) -> str:
    suffix, packing = split_suffix(name)
    return (suffix + packing if suffix else Path(name).suffix).lower()


def _shown(name: str) -> str:
    """Return the name of a file as text: bytes that are none become a mark."""
    return os.fsencode(name).decode("utf-8", "replace").replace(os.sep, "/")
