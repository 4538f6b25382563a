"""Paragraphs and sentences of running text, English or Chinese."""

from __future__ import annotations

import re
from typing import Literal, get_args

from samesense.errors import ConfigError, MissingExtraError

Language = Literal["auto", "en", "zh"]
"""How sentences end; ``auto`` looks at each paragraph."""

_PARAGRAPHS = re.compile(r"\n[^\S\n]*(?:\n\s*)+")
_CHINESE = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff00-\uffef\u3000-\u303f\u2018-\u201d\u2026"
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LATIN = re.compile(r"[^\W\d_\u3400-\u4dbf\u4e00-\u9fff]+")
_BREAK = re.compile(rf"(?<=[{_CHINESE}])\s*\n\s*(?=[{_CHINESE}])")
_CHINESE_SENTENCE = re.compile(r"[^。！？；…!?]*(?:[。！？；…!?]+[\s”’」』）)】》〉]*|$)")


def split_paragraphs(text: str) -> list[str]:
    """Return the paragraphs of ``text``, which blank lines part, without space around them."""
    unified = text.replace("\r\n", "\n").replace("\r", "\n")
    return [paragraph.strip() for paragraph in _PARAGRAPHS.split(unified) if paragraph.strip()]


def split_sentences(paragraph: str, language: Language = "auto") -> list[str]:
    """Return the sentences of a paragraph in order, each on one line.

    English is split by ``nupunkt``, a Punkt model that knows abbreviations. Chinese is split after 。！？；… (several
    in a row count as one) and the closing quotes and brackets that follow. Line breaks within a paragraph are spaces,
    and nothing between Chinese characters.

    Source: Kiss and Strunk 2006, "Unsupervised Multilingual Sentence Boundary Detection" (Punkt).

    Args:
        paragraph: text without blank lines.
        language: ``"auto"`` takes Chinese where there are at least as many Chinese characters as words of an alphabet.

    Raises:
        ConfigError: if the language is not known.
        MissingExtraError: if ``nupunkt`` is needed and absent.
    """
    if language not in get_args(Language):
        raise ConfigError(f"language must be one of {', '.join(get_args(Language))}; received {language!r}.")
    if language == "zh" or (language == "auto" and _is_chinese(paragraph)):
        line = " ".join(_BREAK.sub("", paragraph).split())
        return [piece.strip() for piece in _CHINESE_SENTENCE.findall(line) if piece.strip()]
    try:
        from nupunkt import sentences
    except ImportError as error:
        raise MissingExtraError("nupunkt", "harvest") from error
    return [" ".join(sentence.split()) for sentence in sentences(" ".join(paragraph.split()))]


def _is_chinese(text: str) -> bool:
    han = len(_HAN.findall(text))
    return han > 0 and han >= len(_LATIN.findall(text))
