"""Data augmentation for positives: deletes words of a positive, or replaces them by synonyms.

An augmentation takes pairs of a text and a variant number (0, 1, ... for several variants of one text) and returns the
changed texts, or ``None`` where nothing was changed. The result depends only on the text, the number and the seed.

Source: Dehghan and Amasyali 2022 (SupMPN), appendix A.1; it found no augmentation better than copies of the anchor.
Differs: the number of changed words is rounded and at least one, so that short texts change as well.
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
"""A text, and the number of its variant, from 0."""

Augment = Callable[[Sequence[Variant]], list[str | None]]
"""Maps variants to changed texts, in the same order; ``None`` for a text that was not changed."""

Synonyms = Callable[[str], Sequence[str]]
"""Maps a lower-case word to its synonyms, in a fixed order; to nothing for an unknown word."""

_WORDS = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")


def random_of(seed: int, variant: Variant) -> np.random.Generator:
    """Return the random generator of a variant, seeded by the text and the variant number."""
    text, number = variant
    digest = blake2b(text.encode(), digest_size=8).digest()
    return np.random.default_rng((seed, number, int.from_bytes(digest)))


def deletion(fraction: float = 0.1, *, seed: int = 0) -> Augment:
    """Return an augmentation that deletes a share of the words, at least one and never all.

    Args:
        fraction: share of the words, which are separated by spaces.
        seed: seed of the choice of words.

    Raises:
        ConfigError: if the share is not between 0 and 1.
    """
    _check_share(fraction)

    def change(variant: Variant) -> str | None:
        words = variant[0].split()
        if len(words) < 2:
            return None
        # At least one word changes, and at least one stays.
        count = min(len(words) - 1, max(1, round(fraction * len(words))))
        deleted = set(random_of(seed, variant).permutation(len(words))[:count].tolist())
        return " ".join(word for position, word in enumerate(words) if position not in deleted)

    return lambda variants: [change(variant) for variant in variants]


def synonyms(fraction: float = 0.2, *, seed: int = 0, of: Synonyms | None = None) -> Augment:
    """Return an augmentation that replaces a share of the words by synonyms, at least one word that has synonyms.

    Args:
        fraction: share of all the words of a text.
        seed: seed of the choice of words and synonyms.
        of: returns the synonyms of a word; ``None`` uses WordNet.

    Raises:
        ConfigError: if the share is not between 0 and 1.
        MissingExtraError: if WordNet is needed and nltk is not installed.
        DataError: if WordNet is needed and its files are missing.
    """
    _check_share(fraction)
    look_up = wordnet() if of is None else of

    def change(variant: Variant) -> str | None:
        text = variant[0]
        random = random_of(seed, variant)
        words = list(_WORDS.finditer(text))
        replaceable = {word: options for word in words if (options := look_up(word[0].casefold()))}
        if not replaceable:
            return None
        count = min(len(replaceable), max(1, round(fraction * len(words))))
        selected = [list(replaceable)[index] for index in sorted(random.permutation(len(replaceable))[:count])]
        # From the end, so that the positions of earlier words stay valid.
        for word in reversed(selected):
            new = replaceable[word][int(random.integers(len(replaceable[word])))]
            # A synonym of the first word of a sentence begins it.
            if word[0][:1].isupper():
                new = new[:1].upper() + new[1:]
            text = text[: word.start()] + new + text[word.end() :]
        return text

    return lambda variants: [change(variant) for variant in variants]


def wordnet() -> Synonyms:
    """Return the synonym function of WordNet, read through nltk; synonyms of commoner senses come first.

    MissingExtraError if nltk is not installed, DataError if the files of WordNet are missing.
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
        # WordNet writes phrases with underscores.
        lemmas = (str(name).replace("_", " ") for sense in net.synsets(word) for name in sense.lemma_names())
        return list(dict.fromkeys(lemma for lemma in lemmas if lemma.casefold() != word))

    return look_up


def augment_positives(data: TupleData, augment: Augment, target: int) -> TupleData:
    """Return the data with augmented positives, up to ``target`` positives per anchor.

    The positives of an anchor are augmented in turn; an anchor without positives is augmented itself. A text that
    cannot be changed adds nothing, so that an anchor may end up with fewer. In data with classes, a new text has the
    class of its anchor, unless the text already has a class.
    """
    variants: list[Variant] = []
    for anchor, existing in zip(data.anchors, data.positives, strict=True):
        source = existing or [anchor]
        # Positives in turn; in each round every text has the next variant number.
        variants += [(source[number % len(source)], number // len(source)) for number in range(target - len(existing))]
    changed = iter(augment(variants))
    positives = []
    classes = dict(data.classes or {})
    for anchor, existing in zip(data.anchors, data.positives, strict=True):
        new = [text for text in islice(changed, max(0, target - len(existing))) if text is not None]
        positives.append([*existing, *new])
        for text in new if data.classes else ():
            # A text that already occurs keeps its class.
            classes.setdefault(text, classes[anchor])
    return replace(data, positives=positives, classes=classes if data.classes else None)


def examples(data: TupleData, augment: Augment, count: int = 5) -> list[tuple[str, str | None]]:
    """Return the first positives, each with its augmented text; ``None`` where it is not changed."""
    if count < 1:
        raise ConfigError(f"At least one positive must be asked for; received {count}. Example: 5")
    texts = list(islice((text for positives in data.positives for text in positives), count))
    return list(zip(texts, augment([(text, 0) for text in texts]), strict=True))


def example_lines(data: TupleData, augment: Augment, count: int = 5) -> list[str]:
    """Return the result of :func:`examples` as lines of text, for a look before training."""
    lines = []
    for text, new in examples(data, augment, count):
        lines += [f"  from: {text}", f"  to:   {'(not changed)' if new is None else new}"]
    return lines


def _check_share(fraction: float) -> None:
    if not 0 < fraction < 1:
        raise ConfigError(f"The share of words to change must lie between 0 and 1; received {fraction}. Example: 0.1")
