"""Words of running text, and hashes of words and of whole texts.

A word is a run of letters and digits with their combining marks, in lower case. A character of Chinese, Japanese, Thai,
Lao, Burmese or Khmer writing is a word of its own, with its marks, since no spaces part their words.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

Keys = npt.NDArray[np.uint64]
"""Vector of 64-bit hashes."""

_IDEOGRAPH = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_ALONE = rf"{_IDEOGRAPH}\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\ua9e0-\ua9ff\uaa60-\uaa7f"
_ONE = re.compile(rf"\s*[{_IDEOGRAPH}\u3000-\u303f\uff00-\uffef]")
_POINTS = (*range(0x300, 0x1F000), *range(0xE0100, 0xE01F0))


@cache
def _combining_marks() -> str:
    r"""Return all combining marks; ``\w`` has none of them."""
    return "".join(chr(point) for point in _POINTS if unicodedata.category(chr(point)).startswith("M"))


# Compiled on first use: that takes some 30 ms, and most commands look for no words.


@cache
def _word() -> re.Pattern[str]:
    marks = _combining_marks()
    return re.compile(rf"(?=\w)[{_ALONE}][{marks}]*|[^\W{_ALONE}]+(?:[{marks}]+[^\W{_ALONE}]*)*")


@cache
def word_or_mark() -> re.Pattern[str]:
    """Return the pattern of the words of a text and its marks of punctuation, one by one."""
    return re.compile(rf"{_word().pattern}|[^\w\s][{_combining_marks()}]*")


def words(text: str) -> list[str]:
    """Return the words of ``text`` in order; marks of punctuation are left out."""
    # NFKC first, as it turns some signs into capital letters.
    return _word().findall(unicodedata.normalize("NFKC", text).lower())


def words_and_marks(text: str) -> list[str]:
    """Return the words of ``text`` and its marks of punctuation, one by one, in order."""
    return word_or_mark().findall(unicodedata.normalize("NFKC", text).lower())


def joiner(text: str) -> str:
    """Return what stands between a sentence and ``text`` after it: a space, but nothing before Chinese or Japanese."""
    if _ONE.match(text):
        return ""
    return " "


def key(text: str) -> int:
    """Return the 64-bit hash of ``text``, the same in every process."""
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")


def text_keys(texts: Sequence[str]) -> Keys:
    """Return a hash a text ``(texts,)`` that tells neither case, spacing nor punctuation apart, but the words.

    A text without a word is hashed as it stands.
    """
    keys = (key(" ".join(words(text)) or text.strip()) for text in texts)
    return np.fromiter(keys, dtype=np.uint64, count=len(texts))
