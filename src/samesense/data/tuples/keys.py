"""When two texts count as the same, so that one is no negative of the other."""

from __future__ import annotations

import re
from collections.abc import Callable
from hashlib import blake2b
from typing import Literal

Guard = Literal["off", "same", "near"]
"""Texts of which an anchor is not pushed away: none; those equal to it or a positive of it but for case and spaces; or
those with the same words in any order, too."""

_WORD = re.compile(r"\w+")


def same(text: str) -> str:
    """Return what spellings of one text share: letters in one case, single spaces."""
    return " ".join(text.split()).casefold()


def near(text: str) -> str:
    """Return what texts of the same words share, whatever their order and punctuation."""
    return " ".join(sorted(_WORD.findall(same(text)))) or same(text)


def key_of(false_negative_filter: Guard) -> Callable[[str], int]:
    """Return what gives texts that count as the same one number, in [0, 2**63); texts that do not, different ones."""
    fold = near if false_negative_filter == "near" else same

    def key(text: str) -> int:
        return int.from_bytes(blake2b(fold(text).encode(), digest_size=8).digest()) >> 1

    return key
