"""Documents as training data without labels: some are held out, and their sections give the verdict of the run."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from samesense.data.documents import document_sentences, read_documents
from samesense.data.examples import Examples
from samesense.data.held_out import hold_out_documents
from samesense.data.kinds import detect_kind
from samesense.data.rows.sources import Source, in_memory, short_name
from samesense.data.sentences import collect_sentences
from samesense.errors import DataError
from samesense.places import JOINT
from samesense.recipes.sections.data import SectionsSettings, triplets_of

METHODS = ("simcse", "rankcse", "sections")
"""Methods that train on documents and read no labels."""


def are_documents(sources: Sequence[Source], method: str) -> bool:
    """Return whether a method would train on the documents of some sources."""
    if method not in METHODS or any(map(in_memory, sources)):
        return False
    if method == "sections":
        return True
    with suppress(DataError):  # which the reader explains
        return all(detect_kind(source).kind == "documents" for source in sources)
    return False


def read_with_held_out(sources: Sequence[Source], settings: Any) -> Examples:
    """Read documents as the triplets or sentences that a method trains on, less those that are held out.

    Raises:
        DataError: if a source cannot be read, or nothing is left to train on.
    """
    names = [str(source) for source in sources]
    documents = [document for name in names for document in read_documents(name)]
    train, held_out = hold_out_documents(documents)
    if isinstance(settings, SectionsSettings):
        return replace(triplets_of(train, names, settings), held_out=held_out)
    sentences = collect_sentences(
        document_sentences(train),
        source=JOINT.join(names),
        name=JOINT.join(short_name(Path(name)) for name in names),
        keep_repeated=settings.keep_repeated,
        min_chars=settings.min_chars,
        max_chars=settings.max_chars,
    )
    return replace(sentences, held_out=held_out)
