"""Splits running text into paragraphs and sentences, in English, Chinese and Japanese."""

from __future__ import annotations

import re
from typing import Literal, get_args

from samesense.errors import ConfigError
from samesense.failures import imported

Language = Literal["auto", "en", "zh"]
"""Language whose sentence ends are looked for; ``auto`` decides for each paragraph."""

# A blank line may hold spaces.
_PARAGRAPHS = re.compile(r"\n[^\S\n]*(?:\n\s*)+")
# Kana, Han characters, full-width forms, and the punctuation that stands among them.
_CHINESE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u303f\u2018-\u201d\u2026"
_WITHOUT_SPACES = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uff66-\uff9d"  # kana and Han characters
_EAST_ASIAN = re.compile(f"[{_WITHOUT_SPACES}]")
_SPACED_WORD = re.compile(rf"[^\W\d_{_WITHOUT_SPACES}]+")
_BREAK = re.compile(rf"(?<=[{_CHINESE}])\s*\n\s*(?=[{_CHINESE}])")
_CHINESE_SENTENCE = re.compile(r"[^。｡！？；…!?]*(?:[。｡！？；…!?]+[\s”’」』）)】》〉]*|$)")
# Arabic, Devanagari, Urdu, Armenian and Ethiopic marks, which the package for English does not know.
_OTHER_END = re.compile(r"""(?:(?<=[؟।॥۔։።])|(?<=[؟।॥۔։።][”’»"')\]]))\s+""")


def split_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of ``text``, which are separated by blank lines, without surrounding whitespace."""
    # Line ends of Windows and of old Macs.
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return [paragraph.strip() for paragraph in _PARAGRAPHS.split(unified) if paragraph.strip()]


def split_sentences(paragraph: str, language: Language = "auto") -> list[str]:
    """Return the sentences of a paragraph (a text without blank lines) in order, each on one line.

    English is split by ``nupunkt``, a Punkt model that knows abbreviations, and after ؟।॥۔։። before a space.
    Chinese and Japanese are split after 。！？；… (several in a row count as one) and the closing quotes and brackets
    that follow. ``"auto"`` chooses Chinese where there are at least as many Han characters and kana as other words.
    Line breaks within a paragraph become spaces; between Chinese characters they are removed. MissingExtraError if
    ``nupunkt`` is needed and absent.

    Source: Kiss and Strunk 2006, "Unsupervised Multilingual Sentence Boundary Detection" (Punkt).
    """
    if language not in get_args(Language):
        raise ConfigError(f"language must be one of {', '.join(get_args(Language))}; received {language!r}.")
    if language == "zh" or (language == "auto" and _is_chinese(paragraph)):
        line = " ".join(_BREAK.sub("", paragraph).split())
        return [piece.strip() for piece in _CHINESE_SENTENCE.findall(line) if piece.strip()]
    split = imported("nupunkt", "harvest").sentences
    sentences = [" ".join(sentence.split()) for sentence in split(" ".join(paragraph.split()))]
    return [piece for sentence in sentences for piece in _OTHER_END.split(sentence)]


def _is_chinese(text: str) -> bool:
    characters = len(_EAST_ASIAN.findall(text))
    return characters > 0 and characters >= len(_SPACED_WORD.findall(text))
