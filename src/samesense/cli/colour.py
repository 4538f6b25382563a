"""Colours on a terminal for verdicts, warnings, paths and commands. Elsewhere nothing is added."""

from __future__ import annotations

import os
import re
from typing import TextIO

GREEN = "32"
RED = "1;31"
YELLOW = "1;33"
CYAN = "36"
BOLD = "1"
DIM = "2"
"""Codes of the 16 colours that every terminal has; its theme defines them, so that they are legible."""

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
"""Patterns whose group is painted, and its colour; ``None`` takes the colour of the word in :data:`WORDS`."""


def painted(line: str, stream: TextIO) -> str:
    """Return a line with colour codes if ``stream`` is a terminal that shows colours, else unchanged."""
    if not in_colour(stream):
        return line
    for pattern, colour in RULES:
        if match := re.search(pattern, line):
            start, end = match.span(1)
            line = f"{line[:start]}\x1b[{colour or WORDS[match[1]]}m{match[1]}\x1b[0m{line[end:]}"
    return line


def in_colour(stream: TextIO) -> bool:
    """Return whether a stream is a terminal with colours, by TERM, and the user has not disabled them by NO_COLOR.

    Source: https://no-color.org, for NO_COLOR: any value but an empty one.
    """
    return stream.isatty() and not os.environ.get("NO_COLOR") and (os.environ.get("TERM") or "dumb") != "dumb"
