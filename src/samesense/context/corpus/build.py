"""From documents to a corpus folder, in blocks.

While it is built, the folder has another name; it is renamed at the end, so that it is there whole or not at all:

    sentences.bin   every sentence in UTF-8, one after the other
    ends.bin        int64: where each sentence ends in it
    sections.bin    int64: how many sentences there are up to the end of each section
    documents.bin   int64: the same of each document
    keys.bin        uint64: hash of the words of each sentence
    manifest.json   counts, and the SHA-256 over the hashes of all documents

A build that was killed starts from the beginning: it would have to read and split the documents again in any case,
which takes six times as long as the rest.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Sequence
from itertools import chain, islice
from pathlib import Path

import numpy as np

from samesense.context.corpus.words import text_keys
from samesense.errors import DataError, OutputError
from samesense.files import append, write_json
from samesense.hashes import text_digest

BLOCK_DOCUMENTS = 500
"""Documents held, and written, at a time."""

FORMAT = 2
"""Changes also when the words of a text are others, so that no older keys are read."""

Document = Sequence[Sequence[str]]


def build_corpus(folder: Path, documents: Iterable[Document]) -> str:
    """Write documents into a new corpus folder, and return the SHA-256 of their content in their order.

    A document is a list of sections, each a list of sentences; one without a sentence keeps its number. OutputError if
    the folder exists; DataError if a sentence is no text or blank, or there is no sentence at all.
    """
    if folder.exists():
        raise OutputError(f"{folder} exists already. Choose another folder for the corpus, or remove this one.")
    feed = iter(documents)
    first = list(islice(feed, 1))  # documents that cannot be read leave nothing behind
    beside = folder.with_name(f".{folder.name}-building")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    counts = dict.fromkeys(("sentences", "sections", "documents", "bytes"), 0)
    digest = hashlib.sha256()
    every = chain(first, feed)
    while block := list(islice(every, BLOCK_DOCUMENTS)):
        for number, document in enumerate(block, counts["documents"]):
            digest.update(_digest(document, number))
        _append(beside, block, counts)
    if not counts["sentences"]:
        raise DataError(f"A corpus needs sentences; {counts['documents']} documents were given and none holds one.")
    write_json(beside / "manifest.json", {"format": FORMAT, "sha256": digest.hexdigest(), **counts})
    beside.rename(folder)
    return digest.hexdigest()


def _append(folder: Path, documents: Sequence[Document], counts: dict[str, int]) -> None:
    """Add documents to the files, and to the counts of what is in them."""
    sections = [section for document in documents for section in document]
    texts = [text for section in sections for text in section]
    encoded = [text.encode() for text in texts]
    content: dict[str, bytes | np.ndarray] = {
        "sentences": b"".join(encoded),
        "ends": counts["bytes"] + _ends(map(len, encoded)),
        "sections": counts["sentences"] + _ends(map(len, sections)),
        "documents": counts["sentences"] + _ends(sum(map(len, document)) for document in documents),
        "keys": text_keys(texts),
    }
    for name, array_bytes in content.items():
        append(folder / f"{name}.bin", array_bytes)
    sizes = (len(texts), len(sections), len(documents), sum(map(len, encoded)))
    for name, size in zip(counts, sizes, strict=True):
        counts[name] += size


def _ends(lengths: Iterable[int]) -> np.ndarray:
    return np.cumsum(np.fromiter(lengths, dtype=np.int64))


def _digest(document: Document, number: int) -> bytes:
    """Return the hash of a document, having checked every sentence."""
    for index, section in enumerate(document):
        # A text in the place of a section would be taken for a list of letters.
        sentences = [section] if isinstance(section, str) else section
        for sentence in sentences:
            if isinstance(section, str) or not isinstance(sentence, str) or not sentence.strip():
                raise DataError(
                    f"A document is a list of sections, each a list of sentences that are not blank; section {index} "
                    f"of document {number} holds {sentence!r}. Split texts into sentences, and leave blank ones out."
                )
            # Most sentences are ASCII, and need no search for surrogates.
            if not sentence.isascii() and any("\ud800" <= character <= "\udfff" for character in sentence):
                raise DataError(
                    f"A sentence must be whole characters; section {index} of document {number} holds half of a "
                    f"surrogate pair in {sentence!r}. Decode the text again."
                )
    return text_digest(json.dumps([list(section) for section in document]))
