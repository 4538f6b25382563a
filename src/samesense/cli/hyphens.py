"""Words that begin with a hyphen: a text such as "- not at all", the file "-", or a mistyped option."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cyclopts import ArgumentCollection, Parameter, Token, UnknownOptionError, convert

OPTION = re.compile(r"--[A-Za-z][\w-]*(=.*)?", re.DOTALL)
"""A word that is taken for an option, unless it is behind ``--``; a text of several words is none."""


class Literal(str):
    """A word behind ``--``: a text or a file, however it begins."""

    __slots__ = ()


def mark_literals(arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a command; those behind the first ``--`` as :class:`Literal`."""
    words = list(arguments)
    if "--" not in words:
        return words
    end = words.index("--") + 1
    return [*words[:end], *map(Literal, words[end:])]


def convert_unless_option(kind: Any, tokens: Sequence[Token]) -> Any:
    """Convert words as cyclopts does; UnknownOptionError for one that looks like an option and is not behind ``--``."""
    for token in tokens:
        if not isinstance(token.value, Literal) and OPTION.fullmatch(token.value):
            # A converter does not see the options of its command; the message adds them.
            no_options = ArgumentCollection()  # type: ignore[no-untyped-call]
            raise UnknownOptionError(token=token, argument_collection=no_options)
    return convert(kind, tokens)


HYPHENS = Parameter(allow_leading_hyphen=True, converter=convert_unless_option)
"""Of a parameter that takes words which begin with a hyphen."""
