"""Colour on a terminal: what got better or worse, warnings, places and commands. Elsewhere nothing is added."""

from __future__ import annotations

import os
import re
from typing import TextIO

GREEN, RED, YELLOW, CYAN, BOLD, DIM = "32", "1;31", "1;33", "36", "1", "2"
"""Of the 16 colours that every terminal has and that its theme decides, so that they are legible on any ground."""

WORDS = {"better": GREEN, "worse": RED, "WORSE": RED, "no difference": DIM}
"""The words of a verdict."""

RULES: tuple[tuple[str, str | None], ...] = (
    # in a verdict, and at the end of a row of its table
    (r"^(?:(?:warning: )?(?:verdict|guard): |.*\S {2,})(better|worse|WORSE|no difference)(?= than | from |$)", None),
    (r"^(no verdict)(?=: )", DIM),
    (r"^(warning:)", YELLOW),
    (r"^(samesense: error:)", RED),
    (r"^(?:model|report|written|Report with figures, to open in a browser): (.+)$", CYAN),
    (r"^(?:next: |done: | {2}(?=samesense ))(.+)$", BOLD),
)
"""Patterns with what is painted in brackets, and how; without a colour, as :data:`WORDS` says."""


def painted(line: str, stream: TextIO) -> str:
    """Return a line for people as ``stream`` is to show it: in colour on a terminal that wants it, else unchanged."""
    if not in_colour(stream):
        return line
    for pattern, colour in RULES:
        if found := re.search(pattern, line):
            start, end = found.span(1)
            line = f"{line[:start]}\x1b[{colour or WORDS[found[1]]}m{found[1]}\x1b[0m{line[end:]}"
    return line


def in_colour(stream: TextIO) -> bool:
    """Whether a stream is a terminal that knows colours, by TERM, and whose user wants them, by NO_COLOR.

    Source: https://no-color.org, for NO_COLOR: any value but an empty one.
    """
    return stream.isatty() and not os.environ.get("NO_COLOR") and (os.environ.get("TERM") or "dumb") != "dumb"
