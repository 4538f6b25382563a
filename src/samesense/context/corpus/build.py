"""From documents to a corpus folder, in blocks, so that a killed build goes on where it stopped.

While it is built, the folder has another name; it is renamed at the end, so that it is there whole or not at all:

    sentences.bin   every sentence in UTF-8, one after the other
    ends.bin        int64: where each sentence ends in it
    sections.bin    int64: how many sentences there are up to the end of each section
    documents.bin   int64: the same of each document
    keys.bin        uint64: hash of the words of each sentence
    digests.bin     32 bytes: SHA-256 of each document
    manifest.json   counts, and the SHA-256 over all digests
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

import numpy as np

from samesense.context.corpus.words import text_keys
from samesense.errors import DataError, OutputError
from samesense.files import append, content_hash, read_json, text_digest, truncate, write_json

BLOCK_DOCUMENTS = 500
"""Documents written at a time: what a killed build may lose."""

FORMAT = 1
PROGRESS = "progress.json"
SIZES = {"sentences": 0, "ends": 8, "sections": 8, "documents": 8, "keys": 8, "digests": 32}
"""The files, with the bytes of an element; sentences have no fixed size."""


def build_corpus(
    folder: Path,
    documents: Iterable[Sequence[Sequence[str]]],
    *,
    on_progress: Callable[[int], None] | None = None,
) -> str:
    """Write documents into a new corpus folder.

    A build that was killed goes on if the same documents come again: those already there are compared, not written.

    Args:
        folder: the corpus; must not exist.
        documents: each a list of sections, each a list of sentences. One without a sentence keeps its number.
        on_progress: called with the number of documents just written.

    Returns:
        SHA-256 of the content, equal for equal documents in the same order.

    Raises:
        OutputError: if the folder exists.
        DataError: if a sentence is no text or blank, there is no sentence at all, or the documents are not those of
            the build that is to go on.
    """
    if folder.exists():
        raise OutputError(f"{folder} exists already. Choose another folder for the corpus, or remove this one.")
    feed = iter(documents)
    first = list(islice(feed, 1))  # documents that cannot be read leave nothing behind
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.with_name(f".{folder.name}-building")
    writer = _Writer(beside)
    number = -1
    for number, document in enumerate(chain(first, feed)):
        digest = _digest(document, number)
        if number < len(writer.known):
            if writer.known[number] != digest:
                raise _other_documents(beside, f"document {number} is another one")
            continue
        writer.add(document, digest)
        if len(writer.pending.digests) == BLOCK_DOCUMENTS:
            _report(writer.flush(), on_progress)
    if number + 1 < len(writer.known):
        raise _other_documents(beside, f"there are {number + 1} of them, and {len(writer.known)} were written")
    _report(writer.flush(), on_progress)
    sha256 = writer.finish(number + 1)
    beside.rename(folder)
    return sha256


@dataclass
class _Pending:
    """What is not written yet."""

    texts: list[str] = field(default_factory=list)
    sections: list[int] = field(default_factory=list)
    documents: list[int] = field(default_factory=list)
    digests: list[bytes] = field(default_factory=list)


class _Writer:
    """The files of a corpus that is being built."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        at = folder / PROGRESS
        self._bytes = read_json(at) if at.exists() else dict.fromkeys(SIZES, 0)
        for name in SIZES:
            truncate(self._path(name), int(self._bytes[name]))
        raw = self._path("digests").read_bytes()
        self.known = [raw[start : start + 32] for start in range(0, len(raw), 32)]
        self._sentences = self._bytes["ends"] // 8
        self.pending = _Pending()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.bin"

    def add(self, document: Sequence[Sequence[str]], digest: bytes) -> None:
        """Take a document to be written with the next block."""
        for section in document:
            self.pending.texts += section
            self.pending.sections.append(self._sentences + len(self.pending.texts))
        self.pending.documents.append(self._sentences + len(self.pending.texts))
        self.pending.digests.append(digest)

    def flush(self) -> int:
        """Write what is pending; returns how many documents that were."""
        pending, self.pending = self.pending, _Pending()
        encoded = [text.encode() for text in pending.texts]
        lengths = np.fromiter(map(len, encoded), dtype=np.int64, count=len(encoded))
        content: dict[str, bytes | np.ndarray] = {
            "sentences": b"".join(encoded),
            "ends": self._bytes["sentences"] + np.cumsum(lengths),
            "sections": np.array(pending.sections, dtype=np.int64),
            "documents": np.array(pending.documents, dtype=np.int64),
            "keys": text_keys(pending.texts),
            "digests": b"".join(pending.digests),
        }
        for name, part in content.items():
            append(self._path(name), part)
            self._bytes[name] = self._path(name).stat().st_size
        write_json(self._folder / PROGRESS, self._bytes)
        self._sentences += len(encoded)
        return len(pending.digests)

    def finish(self, documents: int) -> str:
        """Write the manifest; returns the hash of the content."""
        if self._sentences == 0:
            raise DataError(f"A corpus needs sentences; {documents} documents were given and none holds one.")
        sha256 = content_hash([self._path("digests")])
        counts = {name: self._bytes[name] // size for name, size in SIZES.items() if size}
        manifest = {
            "format": FORMAT,
            "sha256": sha256,
            "sentences": counts["ends"],
            "sections": counts["sections"],
            "documents": counts["documents"],
            "bytes": self._bytes["sentences"],
        }
        write_json(self._folder / "manifest.json", manifest)
        (self._folder / PROGRESS).unlink()
        return sha256


def _report(documents: int, on_progress: Callable[[int], None] | None) -> None:
    if documents and on_progress is not None:
        on_progress(documents)


def _digest(document: Sequence[Sequence[str]], number: int) -> bytes:
    """Return the hash of a document, having checked every sentence."""
    for place, section in enumerate(document):
        for sentence in [section] if isinstance(section, str) else section:
            if isinstance(section, str) or not isinstance(sentence, str) or not sentence.strip():
                raise DataError(
                    f"A document is a list of sections, each a list of sentences that are not blank; section {place} "
                    f"of document {number} holds {sentence!r}. Split texts into sentences, and leave blank ones out."
                )
            if not sentence.isascii() and any("\ud800" <= character <= "\udfff" for character in sentence):
                raise DataError(
                    f"A sentence must be whole characters; section {place} of document {number} holds half of a "
                    f"surrogate pair in {sentence!r}. Decode the text again."
                )
    return text_digest(json.dumps([list(section) for section in document]))


def _other_documents(beside: Path, what: str) -> DataError:
    return DataError(
        f"{beside} holds a build of other documents that was stopped: {what}. Give the same documents in the same "
        "order to go on, or remove that folder to begin anew."
    )
