"""Further positives made out of an anchor's own: words deleted, or replaced by synonyms.

An augmentation takes texts with a number each, the first, second ... variant of that text, and returns the changed
texts, or ``None`` where nothing could or should be changed. The same text, number and seed always give the same.

Source: Dehghan and Amasyali 2022 (SupMPN), appendix A.1; it found none of them better than copies of the anchor.
Differs: a share of the words is rounded, and one word at least is changed, so that short texts change as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from hashlib import blake2b
from itertools import islice

import numpy as np

from samesense.data.tuples.data import TupleData
from samesense.errors import ConfigError, DataError
from samesense.failures import imported

Variant = tuple[str, int]
"""A text, and the number from 0 of its variant."""

Augment = Callable[[Sequence[Variant]], list[str | None]]
"""Variants in, changed texts out, in that order; ``None`` for what was not changed."""

Synonyms = Callable[[str], Sequence[str]]
"""A word in lower case in, its synonyms out, always in the same order; none for an unknown word."""

_WORDS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def random_of(seed: int, variant: Variant) -> np.random.Generator:
    """Return the random numbers that belong to a variant of a text."""
    text, number = variant
    digest = blake2b(text.encode(), digest_size=8).digest()
    return np.random.default_rng((seed, number, int.from_bytes(digest)))


def deletion(share: float = 0.1, *, seed: int = 0) -> Augment:
    """Return what deletes a share of the words between spaces, one at least and never all.

    Args:
        share: of the words.
        seed: another seed, other words.

    Raises:
        ConfigError: if the share is not between 0 and 1.
    """
    _check_share(share)

    def change(variant: Variant) -> str | None:
        words = variant[0].split()
        if len(words) < 2:
            return None
        count = min(len(words) - 1, max(1, round(share * len(words))))
        gone = set(random_of(seed, variant).permutation(len(words))[:count].tolist())
        return " ".join(word for at, word in enumerate(words) if at not in gone)

    return lambda variants: [change(variant) for variant in variants]


def synonyms(share: float = 0.2, *, seed: int = 0, of: Synonyms | None = None) -> Augment:
    """Return what replaces a share of the words by synonyms, one word at least where any has some.

    Args:
        share: of all the words of a text.
        seed: another seed, other words.
        of: gives the synonyms of a word; ``None`` takes WordNet.

    Raises:
        ConfigError: if the share is not between 0 and 1.
        MissingExtraError: if WordNet is to be taken and nltk is not installed.
        DataError: if WordNet is to be taken and its files are not there.
    """
    _check_share(share)
    known = wordnet() if of is None else of

    def change(variant: Variant) -> str | None:
        text, random = variant[0], random_of(seed, variant)
        words = list(_WORDS.finditer(text))
        found = {word: options for word in words if (options := known(word[0].casefold()))}
        if not found:
            return None
        count = min(len(found), max(1, round(share * len(words))))
        chosen = [list(found)[at] for at in sorted(random.permutation(len(found))[:count])]
        for word in reversed(chosen):
            new = found[word][int(random.integers(len(found[word])))]
            new = new[:1].upper() + new[1:] if word[0][:1].isupper() else new
            text = text[: word.start()] + new + text[word.end() :]
        return text

    return lambda variants: [change(variant) for variant in variants]


def wordnet() -> Synonyms:
    """Return the synonyms that WordNet knows, those of the commoner senses first, through nltk.

    MissingExtraError if nltk is not installed, DataError if the files of WordNet are not there.
    """
    net = imported("nltk.corpus", "augment").wordnet
    try:
        net.ensure_loaded()
    except LookupError as error:
        raise DataError(
            "Synonyms need the files of WordNet, which nltk does not bring along; they were not found. Fetch them "
            "once with: python -m nltk.downloader wordnet"
        ) from error

    def look_up(word: str) -> list[str]:
        lemmas = (str(name).replace("_", " ") for sense in net.synsets(word) for name in sense.lemma_names())
        return list(dict.fromkeys(lemma for lemma in lemmas if lemma.casefold() != word))

    return look_up


def augmented(data: TupleData, augment: Augment, places: int) -> TupleData:
    """Return the data with further positives, made out of each anchor's own in turn until there are ``places``.

    An anchor without a positive lends its own text. What cannot be changed is not added, so that fewer may come. What
    is made of a text of a class is of that class, unless it is a text of another.
    """
    wanted: list[Variant] = []
    for anchor, own in zip(data.anchors, data.positives, strict=True):
        source = own or [anchor]
        wanted += [(source[at % len(source)], at // len(source)) for at in range(places - len(own))]
    made = iter(augment(wanted))
    positives, classes = [], dict(data.classes or {})
    for anchor, own in zip(data.anchors, data.positives, strict=True):
        new = [text for text in islice(made, max(0, places - len(own))) if text is not None]
        positives.append([*own, *new])
        for text in new if data.classes else ():
            classes.setdefault(text, classes[anchor])
    return replace(data, positives=positives, classes=classes if data.classes else None)


def examples(data: TupleData, augment: Augment, count: int = 5) -> list[tuple[str, str | None]]:
    """Return the first positives with what becomes of each, ``None`` for what is not changed."""
    if count < 1:
        raise ConfigError(f"At least one positive must be asked for; received {count}. Example: 5")
    texts = list(islice((text for own in data.positives for text in own), count))
    return list(zip(texts, augment([(text, 0) for text in texts]), strict=True))


def shown(data: TupleData, augment: Augment, count: int = 5) -> list[str]:
    """Return :func:`examples` as lines for people, to be read before anything is trained on them."""
    lines = []
    for text, new in examples(data, augment, count):
        lines += [f"  from: {text}", f"  to:   {'(not changed)' if new is None else new}"]
    return lines


def _check_share(share: float) -> None:
    if not 0 < share < 1:
        raise ConfigError(f"The share of words to change must lie between 0 and 1; received {share}. Example: 0.1")
