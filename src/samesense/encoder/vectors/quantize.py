"""Quantized vectors: half precision, eight bits or one bit per number, and back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from samesense.errors import DataError
from samesense.files import parse_json
from samesense.types import Embeddings

VectorType = Literal["float32", "float16", "int8", "binary"]
"""Type in which numbers are stored: 4 bytes, 2 bytes, 1 byte, or one bit."""

LEVELS = 255
"""Number of steps in the range of an ``int8``."""


@dataclass(frozen=True)
class Quantizer:
    """How vectors are stored, with everything that is needed to read them back.

    ``int8``: the range of each dimension is divided into 255 steps, and a number is stored as its step less 128; values
    outside the range are clipped. ``binary``: one bit per number, set if it is positive, eight to a byte, less 128.

    Source: ``quantize_embeddings`` of sentence-transformers 6.2, which gives the same bytes.

    Attributes:
        vectors: type in which numbers are stored.
        dim: dimension of a vector.
        ranges: minimum and maximum of each dimension, ``(2, dim)``, for int8; ``None`` for other types.
    """

    vectors: VectorType
    dim: int
    ranges: Embeddings | None = None

    @classmethod
    def fit(cls, vectors: VectorType, rows: Embeddings) -> Quantizer:
        """Return the quantizer for vectors like ``rows``, ``(sample, dim)``; only int8 depends on their values."""
        ranges = np.stack([rows.min(axis=0), rows.max(axis=0)]) if vectors == "int8" else None
        return cls(vectors, rows.shape[1], ranges)

    def apply(self, rows: Embeddings) -> npt.NDArray[Any]:
        """Return vectors ``(rows, dim)`` as they are stored; binary ones are ``(rows, bytes)``."""
        if self.vectors == "binary":
            # The difference wraps around in uint8, and the cast to int8 then gives the byte less 128.
            stored: npt.NDArray[Any] = (np.packbits(rows > 0, axis=1) - 128).astype(np.int8)
        elif self.ranges is None:
            stored = rows.astype(self.vectors, copy=False)
        else:
            starts, steps = self._scale()
            levels = np.clip(np.floor((rows - starts) / np.where(steps == 0, 1, steps)), 0, LEVELS)
            stored = (levels - 128).astype(np.int8)
        return stored

    def restore(self, stored: npt.NDArray[Any]) -> Embeddings:
        """Return vectors, float32 ``(rows, dim)``: the middle of each step for int8, 1 and -1 for binary."""
        if self.vectors == "binary":
            # int8 has no room for the sum.
            bits = np.unpackbits((stored.astype(np.int16) + 128).astype(np.uint8), axis=1, count=self.dim)
            return bits.astype(np.float32) * 2 - 1
        if self.ranges is None:
            return stored.astype(np.float32, copy=False)
        starts, steps = self._scale()
        return (starts + (stored.astype(np.float32) + np.float32(128.5)) * steps).astype(np.float32, copy=False)

    def _scale(self) -> tuple[Embeddings, Embeddings]:
        """Return the start of each dimension's range and its step, which is 0 if all numbers were equal."""
        ranges = np.asarray(self.ranges, dtype=np.float32)
        steps: Embeddings = (ranges[1] - ranges[0]) / LEVELS
        return ranges[0], steps

    def to_json(self) -> bytes:
        """Return the quantizer as a line of JSON, without loss."""
        ranges = None if self.ranges is None else self.ranges.tolist()
        return json.dumps({"vectors": self.vectors, "dim": self.dim, "ranges": ranges}).encode()

    @classmethod
    def from_json(cls, content: bytes, source: str) -> Quantizer:
        """Return the quantizer from the output of :meth:`to_json`; DataError, naming ``source``, for other content."""
        try:
            record = parse_json(content)
            ranges = None
            if record["ranges"] is not None:
                ranges = np.array(record["ranges"], dtype=np.float32)
            quantizer = cls(record["vectors"], int(record["dim"]), ranges)
            if (ranges is None) == (quantizer.vectors == "int8") or (ranges is not None and ranges.shape[0] != 2):
                raise ValueError("the ranges do not belong to the type")
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{source} does not say how the vectors are stored ({error}). Encode again.") from error
        return quantizer
