"""In which form a text comes: raw, or tokenised and lower-cased as some copies of a benchmark are."""

from __future__ import annotations

import re
from collections.abc import Sequence

_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_GLUED = re.compile(r"[^\W\d_][,.?!]( |$)")
_APART = re.compile(r"(^| )[,.?!]( |$)")


def is_chinese(texts: Sequence[str]) -> bool:
    """Tell whether most of the texts hold a Chinese character."""
    return 2 * sum(bool(_HAN.search(text)) for text in texts) > len(texts)


def text_variant(texts: Sequence[str]) -> str:
    """Name the form of a text by what is seen in it, not by where it came from.

    It is tokenised if punctuation stands apart from the word before it in most texts that show either, and
    lower-cased if at most one text in twenty has an upper-case letter (published copies hold a few).
    Chinese text is always called raw. A model whose vocabulary tells cases apart gives other figures on another form.

    Args:
        texts: sentences of one data set.

    Returns:
        ``"raw text"``, ``"lower-cased text"``, ``"tokenised text"`` or ``"tokenised, lower-cased text"``.
    """
    if is_chinese(texts):
        return "raw text"
    apart = sum(bool(_APART.search(text)) for text in texts)
    glued = sum(bool(_GLUED.search(text)) for text in texts)
    lowered = 20 * sum(text != text.lower() for text in texts) <= len(texts)
    found = [name for name, seen in (("tokenised", apart > glued), ("lower-cased", lowered)) if seen]
    return f"{', '.join(found) or 'raw'} text"
