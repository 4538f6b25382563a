"""Documents that are held out of training, and triplets of their sections, by which models are compared.

A sentence should be closer to one of its own section than to one of another section of its document. Documents of one
section each are sections themselves: a sentence should be closer to one of its own document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from samesense.data.documents import Document, Triplet, section_triplets
from samesense.errors import DataError
from samesense.hashes import rows_hash

SHARE = 0.1
"""Share of the documents that is held out, where there are many."""

MOST_SHARE = 0.3
"""Share that is held out where there are few, at most."""

ENOUGH = 10
"""Documents that are held out where a larger share than :data:`SHARE` gives them."""

FEWEST = 8
"""Documents from which an interval over documents is one."""

MOST = 200
"""Documents that are held out at most: with as many, an interval reaches two points to each side."""

PER_DOCUMENT, SEED = 30, 0
"""Triplets drawn from a document at most, and the seed of the draws."""

Unit = Literal["section", "document"]
"""To what a sentence should be closer: sentences of its section, or of its document."""


@dataclass(frozen=True, kw_only=True)
class HeldOutSections:
    """Triplets of documents that are not trained on.

    Attributes:
        triplets: anchor, positive and negative.
        documents: the number of the document of each triplet.
        unit: to what a sentence should be closer.
        reason: why there are none, with what would give some.
    """

    triplets: tuple[Triplet, ...] = ()
    documents: tuple[int, ...] = ()
    unit: Unit = "section"
    reason: str = ""


def hold_out_documents(documents: Sequence[Document]) -> tuple[list[Document], HeldOutSections]:
    """Return the documents to be trained on, and triplets of the others; chosen by their content, not their order.

    Where fewer than :data:`FEWEST` can be held out, all are trained on, and there is a reason in place of triplets.
    """
    by_sections = [number for number, document in enumerate(documents) if _has_sections(document)]
    whole = [number for number, document in enumerate(documents) if len(set(chain.from_iterable(document))) > 1]
    unit: Unit = "section" if _to_hold_out(by_sections) else "document"
    candidates = by_sections if unit == "section" else whole
    count = _to_hold_out(candidates)
    if not count:
        return list(documents), HeldOutSections(reason=_too_few(len(candidates)))
    chosen = set(sorted(candidates, key=lambda number: rows_hash(documents[number]))[:count])
    train = [document for number, document in enumerate(documents) if number not in chosen]
    apart = [documents[number] for number in sorted(chosen)]
    triplets = _of_sections(apart) if unit == "section" else _of_documents(apart)
    if len({number for number, _ in triplets}) < FEWEST:
        return list(documents), HeldOutSections(reason=_too_few(len(candidates)))
    return train, HeldOutSections(
        triplets=tuple(triplet for _, triplet in triplets),
        documents=tuple(number for number, _ in triplets),
        unit=unit,
    )


def _has_sections(document: Document) -> bool:
    return len(document) > 1 and any(len(set(section)) > 1 for section in document)


def _to_hold_out(candidates: Sequence[int]) -> int:
    """Return how many of some documents are held out; 0 where they are too few."""
    number = len(candidates)
    count = min(MOST, max(round(SHARE * number), min(ENOUGH, int(MOST_SHARE * number))))
    return count if count >= FEWEST else 0


def _too_few(number: int) -> str:
    needed = next(number for number in range(1, 1000) if int(MOST_SHARE * number) >= FEWEST)
    return (
        f"of the documents, {number} have sentences to compare, and {needed} are needed so that {FEWEST} can be held "
        "out. Give more, or `test` FILE with labelled pairs: `samesense label` makes them"
    )


def _triplets(document: Document) -> list[Triplet]:
    """Return triplets of the sections of a document; none where it allows none."""
    try:
        return section_triplets([document], PER_DOCUMENT, SEED)
    except DataError:
        return []


def _of_sections(documents: Sequence[Document]) -> list[tuple[int, Triplet]]:
    return [(number, triplet) for number, document in enumerate(documents) for triplet in _triplets(document)]


def _of_documents(documents: Sequence[Document]) -> list[tuple[int, Triplet]]:
    """Return triplets, each with the number of its document, in which a section is a whole document."""
    sections = [list(chain.from_iterable(document)) for document in documents]
    owners: dict[str, int] = {}
    for number, section in enumerate(sections):
        for sentence in section:
            owners.setdefault(sentence, number)
    drawn = section_triplets([sections], sum(map(len, sections)), SEED)
    counts = [0] * len(documents)
    chosen = []
    for triplet in drawn:
        number = owners[triplet[0]]
        if counts[number] < PER_DOCUMENT:
            counts[number] += 1
            chosen.append((number, triplet))
    return sorted(chosen, key=lambda one: one[0])
