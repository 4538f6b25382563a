"""Count the values, keys and nesting of a JSON body from its bytes, before it is parsed.

Parsed values take up to a hundred times the bytes of a body, and validating them blocks every other request.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

CHUNK = 2**18
"""Bytes scanned at once: this takes little memory, and other threads run between two chunks."""

_QUOTE = ord('"')
_COLON = ord(":")
_LEVELS = np.zeros(256, dtype=np.int8)
_LEVELS[[ord("["), ord("{")]] = 1
_LEVELS[[ord("]"), ord("}")]] = -1
_STARTS = np.zeros(256, dtype=bool)
_STARTS[[ord(","), ord("["), ord("{")]] = True
"""Bytes after which, outside of strings, a value may begin."""


class Structure(NamedTuple):
    """Number of values of a body (at most), number of keys of its objects, and depth of nesting."""

    values: int
    keys: int
    depth: int


def measure(body: bytes, most: Structure) -> Structure:
    """Return the structure of JSON in UTF-8, or of its beginning once that exceeds ``most``.

    The counts hold up to the first byte that is not valid JSON, where a parser stops.

    >>> measure(b'{"a": [1, "x, y"]}', Structure(10, 10, 10))
    Structure(values=4, keys=1, depth=2)
    """
    values = 1
    keys = 0
    depth = 0
    deepest = 0
    inside = 0  # 1 where the last chunk ended within a string
    start = 0
    while start < len(body) and values <= most.values and keys <= most.keys and deepest <= most.depth:
        chunk = _chunk(body, start)
        start += len(chunk)
        if b"\\" in chunk:
            # Doubled backslashes first: a quote behind one does end its string.
            chunk = chunk.replace(b"\\\\", b"__").replace(b'\\"', b"__")  # an escaped quote does not end a string
        data = np.frombuffer(chunk, dtype=np.uint8)
        # The parity of the quotes so far: 1 from the opening quote of a string up to its closing quote.
        in_text = np.bitwise_xor.accumulate((data == _QUOTE).view(np.uint8)) ^ inside
        inside = int(in_text[-1])
        outside = data[in_text == 0]
        values += int(np.count_nonzero(_STARTS[outside]))
        keys += int(np.count_nonzero(outside == _COLON))
        # In int32, as a sum over a chunk may exceed a byte.
        levels = np.cumsum(_LEVELS[outside], dtype=np.int32)
        if len(levels):
            deepest = max(deepest, depth + int(levels.max()))
            depth += int(levels[-1])
    return Structure(values, keys, deepest)


def _chunk(body: bytes, start: int) -> bytes:
    """Return the next chunk of ``body``, one byte longer where it would end between a backslash and its character."""
    chunk = body[start : start + CHUNK]
    backslashes = len(chunk) - len(chunk.rstrip(b"\\"))
    if backslashes % 2:
        return body[start : start + CHUNK + 1]
    return chunk
