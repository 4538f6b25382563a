"""Draws triplets from documents: an anchor, a sentence of its section, and one of another section of its document.

Source: Ein Dor et al. (2018), "Learning thematic similarity metric from article sections using triplet networks".
Differs: sections and sentences are drawn at random, without the paper's filters of short sections and sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from samesense.data.documents import Document
from samesense.errors import ConfigError, DataError

Triplet = tuple[str, str, str]
"""Anchor, positive (from the same section), negative (from another section of the same document)."""


def draw_section_triplets(documents: Sequence[Document], per_document: int, seed: int = 0) -> list[Triplet]:
    """Draw triplets from documents with sections, at most ``per_document`` from each, in the order of the documents.

    In each document, anchors are drawn without replacement from the sentences that allow a triplet; the positive is
    then drawn from the other sentences of the anchor's section, and the negative from all sentences that do not occur
    in that section. A document with too few such anchors gives fewer triplets, or none. The draw depends on ``seed``
    and the position of the document, not on the other documents. DataError if a sentence is blank or not a text, or
    no document allows a triplet.
    """
    if per_document < 1:
        raise ConfigError(f"`per_document` is 1 or more; received {per_document}.")
    if seed < 0:
        raise ConfigError(f"`seed` is 0 or more; received {seed}.")
    triplets: list[Triplet] = []
    for number, document in enumerate(documents):
        _check_sentences(document, number)
        triplets += _draw_triplets(document, per_document, np.random.default_rng([seed, number]))
    if not triplets:
        raise DataError(
            f"A triplet needs a document with two sections, one of them with two different sentences; none of "
            f"{len(documents)} documents has that. Give documents with their sections kept apart."
        )
    return triplets


def _check_sentences(document: Document, number: int) -> None:
    for index, section in enumerate(document):
        if isinstance(section, str):
            raise DataError(
                f"A section is a list of sentences, and section {index} of document {number} is one text. "
                "Put it into a list, or split it into sentences."
            )
        for sentence in section:
            if not isinstance(sentence, str) or not sentence.strip():
                raise DataError(
                    f"A sentence is a text that is not blank; section {index} of document {number} holds "
                    f"{sentence!r}. Leave such sentences out."
                )


def _draw_triplets(document: Document, count: int, generator: np.random.Generator) -> list[Triplet]:
    """Return up to ``count`` triplets of one document, with different anchors."""
    # Each sentence once, so that a positive is never its own anchor.
    sections = [list(dict.fromkeys(section)) for section in document]
    # A sentence that occurs in several sections has the order of its last occurrence.
    order = {sentence: index for index, sentence in enumerate(chain.from_iterable(sections))}
    outside = [sorted(order.keys() - set(section), key=order.__getitem__) for section in sections]
    anchors = [
        (index, position)
        for index, section in enumerate(sections)
        if len(section) > 1 and outside[index]
        for position in range(len(section))
    ]
    triplets = []
    for choice in generator.permutation(len(anchors))[:count]:
        index, position = anchors[choice]
        section = sections[index]
        # A step of at least one around the section leads to any other sentence of it.
        positive = section[(position + int(generator.integers(1, len(section)))) % len(section)]
        negative = outside[index][int(generator.integers(len(outside[index])))]
        triplets.append((section[position], positive, negative))
    return triplets
