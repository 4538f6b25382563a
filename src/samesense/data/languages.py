"""Checks whether texts are English, the only language that the default model was trained on."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice

SAMPLE = 300
"""Most texts that are inspected."""

CLEAR = 0.08
"""Share of common words of other languages above which texts are not English; German prose has about 0.25."""

_WORD = re.compile(r"[^\W\d_]+")
_ENGLISH = frozenset("the of and to is that for it was with are this have from not by be at which they".split())
_OTHERS = frozenset(
    # German, Dutch, French, Spanish, Italian, Portuguese, Polish, Swedish; none of them is an English word
    "der die das und nicht ist ein eine einen den dem mit auf für sich auch von het een van niet zijn voor dat "
    "le la les des et est une du dans pour que qui pas el los las una por con del para il che di per non della "
    "um uma não com na nie jest się och att det som är på".split()
)


def reads_as_english(texts: Iterable[str]) -> bool:
    """Return whether texts are English, or at least not clearly in another language.

    They are in another language if most letters are of another script, or if common words of other languages are
    frequent, and more than twice as frequent as those of English.

    >>> reads_as_english(["Der Vertrag ist nichtig.", "Die Frist war kurz, und das Gericht ist streng."])
    False
    """
    words = [word.lower() for text in islice(texts, SAMPLE) for word in _WORD.findall(text)]
    if not words:
        return True
    letters = "".join(words)
    if sum(letter > "\u024f" for letter in letters) > len(letters) / 2:
        return False
    english = sum(word in _ENGLISH for word in words)
    foreign = sum(word in _OTHERS for word in words)
    return foreign <= max(CLEAR * len(words), 2 * english)
