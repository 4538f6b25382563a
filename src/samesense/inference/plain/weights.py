"""Tensors of a safetensors file as NumPy arrays, memory-mapped."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]

FILE = "model.safetensors"

LONGEST_HEADER = 100_000_000
"""Most bytes of a header, by the specification of the format."""

_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}


class NotPlainError(Exception):
    """The model needs torch; the message says why. Users do not see it, because torch is used then."""


class Weights:
    """The tensors of a file by name, converted to float32."""

    def __init__(self, path: Path) -> None:
        """Read the header of a file; NotPlainError if it is missing, damaged, or has unsupported types.

        Source: https://github.com/huggingface/safetensors#format
        """
        if not path.is_file():
            raise NotPlainError(f"{path.name} is absent")
        self._bytes = np.zeros(0, np.uint8)
        if path.stat().st_size:  # an empty file cannot be mapped
            self._bytes = np.memmap(path, dtype=np.uint8, mode="r")
        size = 0
        # The first eight bytes say how long the header is.
        if len(self._bytes) > 8:
            size = int(self._bytes[:8].view("<u8")[0])
        self._start = 8 + size
        # The shortest header is {}, of two bytes.
        if not 2 <= size <= min(LONGEST_HEADER, len(self._bytes) - 8):
            raise NotPlainError(f"{path.name} is damaged")
        try:
            header = json.loads(self._bytes[8 : self._start].tobytes())
            self._entries: dict[str, dict[str, Any]] = {
                name: entry for name, entry in header.items() if name != "__metadata__"
            }
            self.shapes = {name: tuple(entry["shape"]) for name, entry in self._entries.items()}
            # All are checked now, so that damage shows before anything is computed.
            for name, entry in self._entries.items():
                # Nothing here reads tensors of other types, such as position ids.
                if entry["dtype"] in _DTYPES:
                    self._stored(name)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise NotPlainError(f"{path.name} is damaged") from error

    def rows(self, name: str, indices: npt.NDArray[np.int64]) -> Array:
        """Return rows of a matrix, without reading the others."""
        return _float32(self._stored(name)[indices], self._entries[name]["dtype"])

    def __getitem__(self, name: str) -> Array:
        """Return a tensor; one stored in float32 is memory-mapped."""
        return _float32(self._stored(name), self._entries[name]["dtype"])

    def _stored(self, name: str) -> npt.NDArray[Any]:
        entry = self._entries[name]
        start, end = entry["data_offsets"]
        dtype = np.dtype(_DTYPES[entry["dtype"]]).newbyteorder("<")
        if not 0 <= start <= end <= len(self._bytes) - self._start:
            raise ValueError("a tensor lies outside the file")
        if end - start != prod(entry["shape"]) * dtype.itemsize:
            raise ValueError("a tensor has another size than its shape")
        stored = self._bytes[self._start + start : self._start + end]
        # After a header of odd length the numbers are unaligned, which BLAS does not accept.
        aligned = stored.copy() if (self._start + start) % dtype.itemsize != 0 else stored
        return np.asarray(aligned).view(dtype).reshape(entry["shape"])


def _float32(stored: npt.NDArray[Any], dtype: str) -> Array:
    if dtype == "BF16":  # bfloat16 is the upper half of a float32
        return (stored.astype(np.uint32) << 16).view(np.float32)
    converted: Array = stored.astype(np.float32, copy=False)
    return converted
