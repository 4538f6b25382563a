"""Docstrings of functions as the help of commands: their paragraphs, and the text of each parameter."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import samesense
from samesense.api.data import read

Function = Callable[..., Any]

SECTION = re.compile(r"^(Args|Attributes|Example|Raises|Returns|Yields|Source|Differs):", re.MULTILINE)
ENTRY = re.compile(r"^    (\w[\w, ]*): ", re.MULTILINE)
SEE = re.compile(r"[;,]? ?see :\w+:`([\w.]+)`[^.;]*")
"""A reference for readers of Python, up to the end of its clause."""


def paragraphs_of(function: Function) -> list[str]:
    """Return the paragraphs of a docstring before its first section."""
    text = SECTION.split(inspect.getdoc(function) or "")[0].strip()
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n") if paragraph]


@cache
def arguments_of(function: Function) -> dict[str, str]:
    """Return what a docstring says of each parameter in its section ``Args:``."""
    _, _, arguments = (inspect.getdoc(function) or "").partition("\nArgs:\n")
    # The section ends at the next line that is not indented.
    arguments = re.split(r"^(?=\S)", arguments, maxsplit=1, flags=re.MULTILINE)[0]
    _, *entries = ENTRY.split(arguments)
    return {
        name: " ".join(text.split())
        for names, text in zip(entries[::2], entries[1::2], strict=True)
        for name in names.split(", ")
    }


def texts_of(function: Function) -> dict[str, str]:
    """Return the text of each parameter of a function.

    A text such as "see :func:`samesense.read`" stands for the text in that function; parameters that the docstring does
    not describe are those of :func:`samesense.read`.
    """
    # How tables are read is described once, in samesense.read.
    texts = {**arguments_of(read), **arguments_of(function)}
    for name, text in texts.items():
        reference = SEE.match(text)
        if reference is not None:
            # The other function may refer to a third.
            texts[name] = texts_of(getattr(samesense, reference[1].removeprefix("samesense.")))[name]
    return texts


def for_terminal(text: str, flags: Mapping[str, str]) -> str:
    """Return a text of a docstring in the words of a terminal: functions are commands, and parameters are flags."""
    # A terminal has no page of that function to look at.
    text = SEE.sub("", text)
    text = re.sub(r":\w+:`samesense\.(\w+)`", lambda match: f"samesense {match[1].replace('_', '-')}", text)
    return re.sub(r"``(.*?)``", lambda match: _word(match[1], flags), text, flags=re.DOTALL)


def _word(literal: str, flags: Mapping[str, str]) -> str:
    """Return a literal of Python as a word of a command line: without quotes, unless it has a space."""
    if literal == "None":
        return "none"
    quoted = literal.startswith('"') and " " not in literal
    if quoted:
        return literal.strip('"')
    return flags.get(literal, literal)
