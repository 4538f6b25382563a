"""Texts of results on one line, and as Markdown in which nothing of them is markup."""

from __future__ import annotations

import re


def one_line(text: str) -> str:
    """Return the text on one line, without control characters."""
    return "".join(sign for sign in " ".join(text.split()) if sign.isprintable())


def as_sentence(words: str) -> str:
    """Return words with a capital and a full stop."""
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}."


def plain(text: str) -> str:
    """Return text in which Markdown sees no markup; a mark before a space, as in "p < 0.001", is none."""
    return re.sub(r"[\\`*~\[\]>&]|<(?! )|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\\g<0>", one_line(text))


def code(text: str) -> str:
    """Return text as code of Markdown, in which nothing is markup; its marks are more than any that it holds."""
    text = one_line(text)
    marks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{space}{text}{space}{marks}"
