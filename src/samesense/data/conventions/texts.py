"""Cells that are no usable texts: missing, blank, or with invalid characters."""

from __future__ import annotations

import re

_MISSING = frozenset(
    "\\N <NA> #N/A #NAME? #REF! #VALUE! #DIV/0! #NULL! #NUM! #NV #WERT! #BEZUG! #NOM? #VALEUR! #¡REF! #¿NOMBRE?".split()
)
"""What databases, pandas and spreadsheets write for a missing value or an error, and no one writes as a text."""

INVISIBLE = re.compile("[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\u00ad]")
"""Characters without width, which show nothing: joiners, marks of direction, the byte order mark, the soft hyphen."""

PYTHON_BYTES = re.compile(r"^b(['\"]).*\1$", re.DOTALL)
"""A whole text as Python writes bytes, ``b'A text.'``."""

TEXT_FIX = "give the text or delete the row"
"""The fix of a cell that should be a text."""

INTO_COLUMN = "into a column of its own; in pandas, json_normalize does so"
"""The end of the fix of a cell that is an object."""


def text_fix(value: object) -> str:
    """Return the fix of a cell that is no usable text."""
    if isinstance(value, dict):
        return f"write its text {INTO_COLUMN}"
    if isinstance(value, list):
        return "write a row for each item of the list; in pandas: frame.explode"
    if isinstance(value, bytes):
        return "decode it: text.decode()"
    return TEXT_FIX


def text_problem(value: object) -> str:
    """Return what is wrong with a cell that should be a text; an empty string if it is usable."""
    if value is None:
        return "there is no text"
    if not isinstance(value, str):
        return f"a text is needed, received {type(value).__name__} {str(value)[:40]!r}"
    if not value.strip():
        return "the text is empty"
    if is_blank(value):
        return "the text holds only characters that show nothing"
    if value.strip() in _MISSING:
        return f"the text is {value.strip()}, by which programs mark a missing or wrong value"
    return character_problem(value)


def is_blank(text: str) -> bool:
    """Return whether a text shows nothing: it is empty, or holds only spaces and characters without width."""
    return not text.strip() or (not text.isascii() and not INVISIBLE.sub("", text).strip())


def character_problem(text: str) -> str:
    """Return a message if a text has an invalid character, which JSON escapes can express; an empty string if not."""
    if "\0" in text:
        return "the text holds NUL, which is no character"
    if holds_half_character(text):
        return "the text holds half of a surrogate pair, which is no character"
    return ""


def holds_half_character(text: str) -> bool:
    """Return whether a text has half of a surrogate pair, which no tokenizer accepts."""
    # Most texts need no look at each character.
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)
