"""How much a JSON body holds, counted in its bytes before anything is parsed.

Parsed values take up to a hundred times the bytes of a body, and validating them holds up every other request.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CHUNK = 2**18
"""Bytes that are looked at together: little memory, and the interpreter is free in between."""

_QUOTE = ord('"')
_COLON = ord(":")
_LEVELS = np.zeros(256, dtype=np.int8)
_LEVELS[[ord("["), ord("{")]] = 1
_LEVELS[[ord("]"), ord("}")]] = -1
_STARTS = np.zeros(256, dtype=bool)
_STARTS[[ord(","), ord("["), ord("{")]] = True
"""Bytes before which, outside of texts, a value ends or after which one begins."""


class Structure(NamedTuple):
    """Values of a body at most, keys of its objects, and how deep lists and objects are nested."""

    values: int
    keys: int
    depth: int


def measure(body: bytes, most: Structure) -> Structure:
    """Return the structure of JSON in UTF-8, or of its beginning where that exceeds ``most``.

    It is right up to the first byte that is not JSON, where a parser stops.

    >>> measure(b'{"a": [1, "x, y"]}', Structure(10, 10, 10))
    Structure(values=4, keys=1, depth=2)
    """
    values, keys, depth, deepest, inside = 1, 0, 0, 0, 0
    start = 0
    while start < len(body) and values <= most.values and keys <= most.keys and deepest <= most.depth:
        chunk = _chunk(body, start)
        start += len(chunk)
        if b"\\" in chunk:
            chunk = chunk.replace(b"\\\\", b"__").replace(b'\\"', b"__")
        data = np.frombuffer(chunk, dtype=np.uint8)
        in_text = np.bitwise_xor.accumulate((data == _QUOTE).view(np.uint8)) ^ inside
        inside = int(in_text[-1])
        outside = data[in_text == 0]
        values += int(np.count_nonzero(_STARTS[outside]))
        keys += int(np.count_nonzero(outside == _COLON))
        levels = np.cumsum(_LEVELS[outside], dtype=np.int32)
        if len(levels):
            deepest = max(deepest, depth + int(levels.max()))
            depth += int(levels[-1])
    return Structure(values, keys, deepest)


def _chunk(body: bytes, start: int) -> bytes:
    """Return the bytes from ``start`` on; an escaped character is not parted from its backslash."""
    chunk = body[start : start + CHUNK]
    backslashes = len(chunk) - len(chunk.rstrip(b"\\"))
    return body[start : start + CHUNK + 1] if backslashes % 2 else chunk
