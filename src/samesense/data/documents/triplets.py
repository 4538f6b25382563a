"""Triplets from documents with sections: an anchor, a sentence of its section, and one of another section."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from samesense.errors import ConfigError, DataError

Document = Sequence[Sequence[str]]
"""Sections in order, each a list of sentences."""

Triplet = tuple[str, str, str]
"""Anchor, positive (of the same section), negative (of another section of the same document)."""


def section_triplets(documents: Sequence[Document], per_document: int, seed: int = 0) -> list[Triplet]:
    """Draw triplets from documents with sections, at most ``per_document`` of each, in the order of the documents.

    In each document, anchors are drawn without repetition among the sentences that allow a triplet; the positive is
    then drawn from the other sentences of the anchor's section, and the negative from all sentences that do not occur
    in that section. A document gives fewer triplets, or none, where it has no more such anchors. Draws depend on
    ``seed`` and the position of the document, not on the other documents. DataError if a sentence is no text or blank,
    or no document allows a triplet.

    Source: Ein Dor et al. (2018), "Learning thematic similarity metric from article sections using triplet networks".
    Differs: sections and sentences are drawn at random, without their filters of short sections and sentences.
    """
    if per_document < 1:
        raise ConfigError(f"per_document must be at least 1, got {per_document}.")
    if seed < 0:
        raise ConfigError(f"seed must be 0 or larger, got {seed}.")
    triplets: list[Triplet] = []
    for number, document in enumerate(documents):
        _check(document, number)
        triplets += _drawn(document, per_document, np.random.default_rng([seed, number]))
    if not triplets:
        raise DataError(
            f"A triplet needs a document with two sections, one of them with two different sentences; none of "
            f"{len(documents)} documents has that. Give documents with their sections kept apart."
        )
    return triplets


def _check(document: Document, number: int) -> None:
    for place, section in enumerate(document):
        if isinstance(section, str):
            raise DataError(
                f"A section is a list of sentences, and section {place} of document {number} is one text. "
                "Put it into a list, or split it into sentences."
            )
        for sentence in section:
            if not isinstance(sentence, str) or not sentence.strip():
                raise DataError(
                    f"A sentence is a text that is not blank; section {place} of document {number} holds "
                    f"{sentence!r}. Leave such sentences out."
                )


def _drawn(document: Document, count: int, generator: np.random.Generator) -> list[Triplet]:
    """Return up to ``count`` triplets of one document, with different anchors."""
    sections = [list(dict.fromkeys(section)) for section in document]
    everything = {sentence: place for place, sentence in enumerate(chain.from_iterable(sections))}
    others = [sorted(everything.keys() - set(section), key=everything.__getitem__) for section in sections]
    anchors = [
        (place, own)
        for place, section in enumerate(sections)
        if len(section) > 1 and others[place]
        for own in range(len(section))
    ]
    triplets = []
    for chosen in generator.permutation(len(anchors))[:count]:
        place, own = anchors[chosen]
        section = sections[place]
        positive = section[(own + int(generator.integers(1, len(section)))) % len(section)]
        negative = others[place][int(generator.integers(len(others[place])))]
        triplets.append((section[own], positive, negative))
    return triplets
