"""Prepare the sources of a collection: rows of a table, lines of a file, or documents cut into passages."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from samesense.data.extraction.files import DocumentFiles
from samesense.data.passages import check_sizes
from samesense.data.rows.compression import is_text_file
from samesense.errors import ConfigError
from samesense.inference.collection.collection import Collection
from samesense.inference.collection.documents import (
    are_documents,
    build_from_documents,
    found_documents,
    update_from_documents,
)
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import Entry, read_entries

logger = logging.getLogger(__name__)


@dataclass
class _Rows:
    """Rows of a table or lines of a text file; ``remark`` is logged after the build."""

    entries: Iterator[Entry]
    remark: str

    def build(self, folder: str | Path, embedder: Embedder, **options: Any) -> Collection:
        collection = Collection.build(folder, self.entries, embedder, **options)
        if self.remark:
            logger.info(self.remark)
        return collection

    def add(
        self, collection: Collection, embedder: Embedder, *, upsert: bool, on_progress: Callable[[int], None] | None
    ) -> int:
        return collection.add(self.entries, embedder, upsert=upsert, on_progress=on_progress)


@dataclass
class _Documents:
    """Documents, found but not read."""

    sources: Sequence[str]
    files: DocumentFiles
    chunk_size: int | None
    chunk_overlap: int | None
    strict: bool

    def build(self, folder: str | Path, embedder: Embedder, **options: Any) -> Collection:
        collection, _ = build_from_documents(
            folder,
            self.sources,
            embedder,
            documents=self.files,
            chunk_size=self.chunk_size,
            chunk_overlap=self.chunk_overlap,
            strict=self.strict,
            **options,
        )
        return collection

    def add(
        self, collection: Collection, embedder: Embedder, *, upsert: bool, on_progress: Callable[[int], None] | None
    ) -> int:
        if upsert:
            raise ConfigError("`upsert` is for rows with ids; changed documents are replaced without it. Leave it out.")
        report = update_from_documents(
            collection.folder, embedder, new_sources=self.sources, strict=self.strict, on_progress=on_progress
        )
        return report.passages


def prepare(
    sources: Sequence[str],
    *,
    columns: str | None = None,
    documents: bool | None = None,
    chunk_size: int | None = None,
    chunk_overlap: int | None = None,
    strict: bool = False,
    drop_bad_rows: bool = False,
) -> _Rows | _Documents:
    """Check the sources of a collection before a model is loaded.

    Files must exist, their readers be installed, and the first row be valid. What is returned builds a collection or
    adds to one, and then says the number of texts written.

    Args:
        sources: folders, patterns or files of documents; or one file of rows, see
            :func:`~samesense.inference.collection.entries.read_entries`.
        columns: column of a table whose texts are read.
        documents: cut a single ``.txt`` file into passages instead of reading one text a line.
        chunk_size: most tokens of a passage.
        chunk_overlap: most tokens that neighbouring passages share.
        strict: refuse a document that cannot be read.
        drop_bad_rows: leave out invalid rows.

    Raises:
        DataError: if a source does not exist or cannot be read.
        ConfigError: for options of tables with documents, or of documents with tables.
        MissingExtraError: if the reader of a format is not installed.
    """
    if not sources:
        raise ConfigError("A collection is built from a folder or a file; received none. Name one.")
    table_options = {"columns": columns, "drop_bad_rows": drop_bad_rows}
    passage_options = {"chunk_size": chunk_size, "chunk_overlap": chunk_overlap, "strict": strict}
    if are_documents(sources, documents):
        _refuse(table_options, f"is for rows; {', '.join(sources[:3])} is read as documents")
        if chunk_size is not None:
            check_sizes(chunk_size, chunk_overlap or 0)
        return _Documents(sources, found_documents(sources), chunk_size, chunk_overlap, strict)
    (source,) = sources
    remark = ""
    if is_text_file(source):
        fix = ". To cut it into passages: `documents`"
        remark = f"{source}: one text a line{fix}"
        _refuse(passage_options, f"is for documents; {source} is read as one text a line{fix}")
    else:
        _refuse(passage_options, f"is for documents; {source} is read as rows")
    entries = read_entries(source, columns=columns, drop_bad_rows=drop_bad_rows)
    first = next(entries)  # raises for a missing file or an invalid first row
    return _Rows(chain([first], entries), remark)


def _refuse(options: dict[str, Any], reason: str) -> None:
    for name, value in options.items():
        if value not in (None, False):
            raise ConfigError(f"`{name}` {reason}.")
