"""Collections of documents: files cut into passages, and updated when the files change."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from samesense.data.conventions.named_columns import listed
from samesense.data.extraction.files import (
    DocumentFile,
    DocumentFiles,
    check_readers,
    find_documents,
    is_document_name,
    is_pattern,
    is_plain_folder,
    read_document_file,
)
from samesense.data.passages import CHUNK_OVERLAP, CHUNK_SIZE, CountTokens, check_sizes, cut_passages, estimate_tokens
from samesense.data.rows.compression import is_text_file
from samesense.errors import ConfigError, DataError
from samesense.failures import abridged
from samesense.hashes import content_hash
from samesense.inference.collection import store
from samesense.inference.collection.collection import Collection
from samesense.inference.collection.conditions import among
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import Entry
from samesense.inference.collection.writer import Writer, writing

logger = logging.getLogger(__name__)

SHOWN = 20
"""Most skipped files that the summary names; each was logged before, with its reason."""

HASH_DIGITS = 16
"""Digits of a file's SHA-256 that are stored with each of its passages."""


@dataclass(frozen=True)
class DocumentSources:
    """Where the documents of a collection are, and how they are cut; stored with it for the next update.

    Attributes:
        sources: folders, patterns and files, as given.
        base: folder that relative sources are relative to.
        chunk_size: most tokens of a passage.
        chunk_overlap: most tokens that neighbouring passages share.
    """

    sources: list[str]
    base: str
    chunk_size: int
    chunk_overlap: int

    def json(self) -> str:
        """Return the sources as JSON, as the collection stores them."""
        return json.dumps(asdict(self), ensure_ascii=False)


@dataclass
class ReadingReport:
    """Counts of a build or an update.

    Attributes:
        files: number of files read.
        passages: number of passages written.
        skipped: names of the files that could not be read, with the reason.
        unchanged: number of files that have not changed since the last time.
        removed: number of files that no longer exist.
    """

    files: int = 0
    passages: int = 0
    skipped: dict[str, str] = field(default_factory=dict)
    unchanged: int = 0
    removed: int = 0

    def log(self) -> None:
        """Log how many files were read, and which could not be read."""
        figures = [f"{self.files:,} files read"]
        if self.unchanged:
            figures.append(f"{self.unchanged:,} unchanged")
        if self.removed:
            figures.append(f"{self.removed:,} removed")
        logger.info(f"documents: {', '.join(figures)}")
        if self.skipped:
            total = self.files + len(self.skipped)
            names = listed(list(self.skipped), SHOWN)
            logger.warning(
                f"{len(self.skipped)} of {total} files could not be read and were left out: {names}. "
                "`strict` refuses them"
            )


def are_documents(sources: Sequence[str], documents: bool | None = None) -> bool:
    """Return whether sources are documents to cut into passages, rather than rows of a table or lines of a file.

    Folders, patterns, several files, and single ``.md``, ``.html``, ``.pdf`` and ``.docx`` files are documents. A
    single ``.txt`` file holds one text a line, unless ``documents`` is true. A folder saved by ``datasets`` holds rows.
    """
    first = sources[0]
    if len(sources) > 1 or is_pattern(first) or is_plain_folder(first):
        return True
    return is_document_name(first) and (not is_text_file(first) or bool(documents))


def sizes_for(embedder: Embedder, chunk_size: int | None, chunk_overlap: int | None) -> tuple[int, int]:
    """Return the most tokens of a passage and of an overlap; the defaults are limited to what the model reads.

    ConfigError if the model would truncate passages of this size.
    """
    reading = embedder.reading
    longest = None
    if reading is not None and reading.longest is not None:
        longest = reading.longest - reading.lengths([""])[0]  # without prompt and special tokens
    if chunk_size is not None and longest is not None and chunk_size > longest:
        raise ConfigError(
            f"A passage is read whole: {embedder.name} reads {longest} tokens; received `chunk_size` {chunk_size}."
        )
    if chunk_size is None:
        chunk_size = min(CHUNK_SIZE, longest or CHUNK_SIZE)
    if chunk_overlap is None:
        chunk_overlap = min(CHUNK_OVERLAP, chunk_size // 4)
    check_sizes(chunk_size, chunk_overlap)
    return chunk_size, chunk_overlap


def found_documents(sources: Sequence[str], base: Path | None = None) -> DocumentFiles:
    """Return the documents, after logging which are read and which not, and checking that readers are installed."""
    documents = find_documents(sources, base)
    logger.info(f"{abridged(sources, 5)}: {documents.summary}")
    for message in documents.unreadable:
        logger.warning(message)
    check_readers(documents.files)
    return documents


def build_from_documents(
    folder: str | Path,
    sources: Sequence[str],
    embedder: Embedder,
    *,
    documents: DocumentFiles | None = None,
    chunk_size: int | None = None,
    chunk_overlap: int | None = None,
    strict: bool = False,
    **options: Any,
) -> tuple[Collection, ReadingReport]:
    """Build a collection of the passages of documents.

    The metadata of a passage are ``file``, ``passage`` (its number in the file), ``title``, ``section``, ``page`` or
    ``line`` where there are any, and ``file_hash``.

    Args:
        folder: where to write the collection.
        sources: folders, patterns and files.
        embedder: the model.
        documents: the files of ``sources``, if they have been searched for before.
        chunk_size: most tokens of a passage.
        chunk_overlap: most tokens that neighbouring passages share.
        strict: refuse a file that cannot be read, instead of leaving it out with a warning.
        options: ``dtype``, ``approximate``, ``overwrite`` and ``on_progress`` of :meth:`Collection.build`.

    Returns:
        The collection and the report on the files.

    Raises:
        DataError: if there is no document, none can be read, or with ``strict`` one cannot be read.
        ConfigError: for invalid sizes.
        MissingExtraError: if the reader of a format is not installed.
    """
    if documents is None:
        documents = found_documents(sources)
    size, overlap = sizes_for(embedder, chunk_size, chunk_overlap)
    origin = DocumentSources(list(sources), str(Path.cwd()), size, overlap)
    # It is filled while the entries are read.
    report = ReadingReport()
    entries = _entries(documents.files, embedder, origin, report, strict=strict)
    collection = Collection.build(
        folder,
        _refuse_none(entries, sources, report),
        embedder,
        sources=origin.json(),
        **options,
    )
    report.log()
    return collection, report


def update_from_documents(
    folder: str | Path,
    embedder: Embedder,
    *,
    new_sources: Sequence[str] = (),
    strict: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> ReadingReport:
    """Update a collection to its files, all or nothing: only new and changed files are encoded.

    The passages of files that no longer exist are deleted. Those of a file that has changed and cannot be read any more
    stay, with a warning.

    Args:
        folder: the collection.
        embedder: its model.
        new_sources: more folders, patterns and files, which belong to the collection from now on.
        strict: refuse a file that cannot be read.
        on_progress: called with the number of passages just written.

    Raises:
        DataError: if the collection was not built from documents and there are no ``new_sources``, a source does not
            exist any more, or with ``strict`` a file cannot be read.
        ModelError: for another model than that of the collection.
    """
    Collection.open(folder).check_model(embedder)
    report = ReadingReport()
    with writing(Path(folder)) as writer:
        origin = _origin(writer.about.sources, new_sources, embedder, Path(folder))
        documents = found_documents(origin.sources, Path(origin.base))
        indexed = _indexed_files(writer)
        names = {file.name for file in documents.files}
        gone = indexed.keys() - names
        changed = [file for file in documents.files if _has_changed(file, indexed)]
        report.unchanged = len(names) - len(changed)
        report.removed = len(gone)
        entries = _entries(changed, embedder, origin, report, strict=strict)
        first = list(islice(entries, 1))  # inserting nothing is an error
        if first:
            # The first entry was taken out to see whether there is any.
            writer.insert(chain(first, entries), embedder, False, on_progress)
        # Old passages are deleted only after all files are read, as those of unreadable files stay.
        replaced = {file.name for file in changed} - report.skipped.keys()
        ids = [number for name in gone | (replaced & indexed.keys()) for number in indexed[name].ids]
        if ids:
            writer.delete(among(ids))
        writer.about.sources = origin.json()
    for name in sorted(report.skipped.keys() & indexed.keys()):
        logger.warning(f"{name}: it has changed and cannot be read; the passages of its last version stay")
    report.log()
    return report


@dataclass
class _IndexedFile:
    """A file in a collection: its hash, and the ids of its passages."""

    file_hash: str
    ids: list[int] = field(default_factory=list)


def _indexed_files(writer: Writer) -> dict[str, _IndexedFile]:
    """Return the files whose passages are in a collection, by name."""
    query = (
        "SELECT id, json_extract(metadata, '$.file'), json_extract(metadata, '$.file_hash') FROM text "
        "WHERE json_extract(metadata, '$.file_hash') IS NOT NULL"
    )
    files: dict[str, _IndexedFile] = {}
    with store.saying(writer.folder):
        for number, name, digest in writer.db.execute(query):
            files.setdefault(name, _IndexedFile(digest)).ids.append(number)
    return files


def _has_changed(file: DocumentFile, indexed: dict[str, _IndexedFile]) -> bool:
    """Return whether a file is new or has changed since it was indexed; true for one that cannot be read."""
    try:
        return file.name not in indexed or indexed[file.name].file_hash != _short_hash(file.path)
    except OSError:
        return True


def _short_hash(path: Path) -> str:
    return content_hash([path])[:HASH_DIGITS]


def _origin(stored: str, new_sources: Sequence[str], embedder: Embedder, folder: Path) -> DocumentSources:
    """Return the sources that a collection stores, as JSON, with the new ones; DataError if there are none."""
    if not stored and not new_sources:
        raise DataError(
            f"{folder} was not built from documents, so there are no files to compare it with. Build it from a folder, "
            "or add texts: samesense index add"
        )
    if not stored:
        return DocumentSources(list(new_sources), str(Path.cwd()), *sizes_for(embedder, None, None))
    try:
        origin = DocumentSources(**json.loads(stored))
    except (TypeError, ValueError) as error:
        raise DataError(f"{folder} is damaged: its sources cannot be read ({error}). Build it again.") from error
    if origin.base != str(Path.cwd()):  # new relative sources are relative to another folder than the stored ones
        new_sources = [str(Path(source).expanduser().absolute()) for source in new_sources]
    return replace(origin, sources=list(dict.fromkeys([*origin.sources, *new_sources])))


def _entries(
    files: Iterable[DocumentFile],
    embedder: Embedder,
    origin: DocumentSources,
    report: ReadingReport,
    *,
    strict: bool,
) -> Iterator[Entry]:
    """Yield the passages of files; a file that cannot be read is named in the report, or refused if ``strict``."""
    count_tokens = _token_counter(embedder)
    for file in files:
        try:
            entries = _file_entries(file, count_tokens, origin)
        except DataError as error:
            if strict:
                raise DataError(f"{error} Without `strict` such files are left out.") from error
            report.skipped[file.name] = str(error)
            logger.warning(f"left out: {error}")
            continue
        report.files += 1
        report.passages += len(entries)
        yield from entries


def _file_entries(file: DocumentFile, count_tokens: CountTokens, origin: DocumentSources) -> list[Entry]:
    document = read_document_file(file)
    if document.remark:
        logger.warning(f"{file.name}: {document.remark}")
    digest = _short_hash(file.path)
    passages = cut_passages(document, count_tokens, chunk_size=origin.chunk_size, chunk_overlap=origin.chunk_overlap)
    return [
        Entry(passage.text, None, {"file": file.name, **passage.metadata, "file_hash": digest}) for passage in passages
    ]


def _token_counter(embedder: Embedder) -> CountTokens:
    """Return a function that counts the tokens of texts, without prompt and special tokens."""
    reading = embedder.reading
    if reading is None:
        return estimate_tokens
    added = reading.lengths([""])[0]

    def count(texts: list[str]) -> list[int]:
        return [length - added for length in reading.lengths(texts)]

    return count


def _refuse_none(entries: Iterator[Entry], sources: Sequence[str], report: ReadingReport) -> Iterator[Entry]:
    """Yield entries; DataError if there are none, with the reason of the first file."""
    first = next(entries, None)
    if first is None:
        reasons = list(report.skipped.values())
        message = f"{', '.join(sources)}: no document could be read. {''.join(reasons[:1])}"
        if len(reasons) > 1:
            message += f" And {len(reasons) - 1} other files could not be read."
        raise DataError(message)
    yield first
    yield from entries
