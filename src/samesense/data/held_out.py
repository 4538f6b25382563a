"""Holds documents out of training, and forms triplets of their sections to compare models on.

A sentence should be closer to a sentence of its own section than to one of another section of the same document.
Where documents have only one section, a sentence should be closer to a sentence of its own document.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from samesense.data.documents import Document
from samesense.data.sampling import count_to_hold_out
from samesense.data.section_triplets import Triplet, draw_section_triplets
from samesense.errors import DataError
from samesense.hashes import rows_hash

SHARE = 0.1
"""Share of the documents that is held out if there are many."""

MOST_SHARE = 0.3
"""Largest share that is held out if there are few."""

ENOUGH = 10
"""Documents to hold out if :data:`SHARE` gives fewer; the share then grows up to :data:`MOST_SHARE`."""

FEWEST = 8
"""Fewest held-out documents for a meaningful confidence interval over documents."""

MOST = 200
"""Most documents that are held out; with this number, a confidence interval is two points to each side."""

PER_DOCUMENT = 30
"""Most triplets drawn from a document."""

SEED = 0
"""Seed of the draws."""

Unit = Literal["section", "document"]
"""What a sentence should be closer to: sentences of its section, or of its document."""


@dataclass(frozen=True, kw_only=True)
class HeldOutSections:
    """Triplets of documents that are held out from training.

    Attributes:
        triplets: anchor, positive and negative.
        documents: the number of the document of each triplet.
        unit: see :data:`Unit`.
        reason: why there are no triplets, and how to get some; empty if there are triplets.
    """

    triplets: tuple[Triplet, ...] = ()
    documents: tuple[int, ...] = ()
    unit: Unit = "section"
    reason: str = ""


def hold_out_documents(documents: Sequence[Document]) -> tuple[list[Document], HeldOutSections]:
    """Return the documents to train on, and triplets of the others, which are chosen by a hash of their content.

    If fewer than :data:`FEWEST` can be held out, all are trained on, and there is a reason in place of triplets.
    """
    unit, candidates = _candidates(documents)
    count = _count_to_hold_out(candidates)
    if not count:
        return list(documents), HeldOutSections(reason=_describe_shortage(len(candidates)))
    # Sorted by hash, so that the choice does not depend on the order of the documents.
    chosen = set(sorted(candidates, key=lambda number: rows_hash(documents[number]))[:count])
    train = [document for number, document in enumerate(documents) if number not in chosen]
    held_out = triplets_of([documents[number] for number in sorted(chosen)], unit)
    if len(set(held_out.documents)) < FEWEST:
        return list(documents), HeldOutSections(reason=_describe_shortage(len(candidates)))
    return train, held_out


def compare_held_out(documents: Sequence[Document]) -> HeldOutSections:
    """Return triplets of documents that were held out already: of their sections where enough have several."""
    units: tuple[Unit, ...] = ("section", "document")
    for unit in units:
        held_out = triplets_of(documents[:MOST], unit)
        if len(set(held_out.documents)) >= FEWEST:
            return held_out
    return HeldOutSections(
        reason=f"{len(documents)} documents were held out, and {FEWEST} that have sentences to compare are needed"
    )


def triplets_of(documents: Sequence[Document], unit: Unit) -> HeldOutSections:
    """Return the triplets of some documents, by their sections or by document."""
    if unit == "section":
        numbered = [
            (number, triplet) for number, document in enumerate(documents) for triplet in _draw_triplets(document)
        ]
    else:
        numbered = _triplets_by_document(documents)
    return HeldOutSections(
        triplets=tuple(triplet for _, triplet in numbered),
        documents=tuple(number for number, _ in numbered),
        unit=unit,
    )


def _candidates(documents: Sequence[Document]) -> tuple[Unit, list[int]]:
    """Return the unit of triplets, and the numbers of the documents that have enough text for them."""
    with_sections = [number for number, document in enumerate(documents) if _has_sections(document)]
    # Sections of one document are harder to tell apart than documents, so they come first.
    if _count_to_hold_out(with_sections):
        return "section", with_sections
    return "document", [
        number for number, document in enumerate(documents) if len(set(chain.from_iterable(document))) > 1
    ]


def _has_sections(document: Document) -> bool:
    return len(document) > 1 and any(len(set(section)) > 1 for section in document)


def _count_to_hold_out(candidates: Sequence[int]) -> int:
    """Return how many of the candidates are held out; 0 if they are too few."""
    return count_to_hold_out(
        len(candidates), share=SHARE, most_share=MOST_SHARE, enough=ENOUGH, fewest=FEWEST, most=MOST
    )


def _describe_shortage(number: int) -> str:
    needed = math.ceil(FEWEST / MOST_SHARE)
    return (
        f"of the documents, {number} have sentences to compare, and {needed} are needed so that {FEWEST} can be held "
        "out. Give more, or `test` FILE with labelled pairs: `samesense label` makes them"
    )


def _draw_triplets(document: Document) -> list[Triplet]:
    """Return triplets of the sections of a document; none if it allows none."""
    try:
        # A document of too few sentences gives none, which is no error here.
        return draw_section_triplets([document], PER_DOCUMENT, SEED)
    except DataError:
        return []


def _triplets_by_document(documents: Sequence[Document]) -> list[tuple[int, Triplet]]:
    """Return triplets, each with the number of its document, where each document counts as one section."""
    sections = [list(chain.from_iterable(document)) for document in documents]
    # A sentence that occurs in several documents belongs to the first.
    owners: dict[str, int] = {}
    for number, section in enumerate(sections):
        for sentence in section:
            owners.setdefault(sentence, number)
    # As sections of one document, so that negatives come from other documents.
    try:
        triplets = draw_section_triplets([sections], max(1, sum(map(len, sections))), SEED)
    except DataError:  # there is only one document, or each has one sentence
        return []
    counts = [0] * len(documents)
    numbered_triplets = []
    for triplet in triplets:
        number = owners[triplet[0]]
        if counts[number] < PER_DOCUMENT:
            counts[number] += 1
            numbered_triplets.append((number, triplet))
    return sorted(numbered_triplets, key=lambda numbered: numbered[0])
