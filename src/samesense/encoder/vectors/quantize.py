"""Vectors in fewer bytes: half precision, eight bits a number, or one bit a number, and back."""

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
"""How numbers are stored: in 4 bytes, 2, 1, or one bit."""

LEVELS = 255
"""Steps between the ends of the range of an ``int8``."""


@dataclass(frozen=True)
class Quantizer:
    """How vectors are stored, and all that is needed to read them back.

    ``int8``: the range of each dimension is cut into 255 steps, and a number is the step that it is in, less 128; one
    outside the range is at its end. ``binary``: one bit says whether a number is above zero, eight to a byte, less 128.

    Source: ``quantize_embeddings`` of sentence-transformers 6.2, which gives the same bytes.

    Attributes:
        vectors: the type.
        dim: numbers of a vector.
        ranges: the least and the greatest of each dimension, ``(2, dim)``, for int8; ``None`` for others.
    """

    vectors: VectorType
    dim: int
    ranges: Embeddings | None = None

    @classmethod
    def fit(cls, vectors: VectorType, rows: Embeddings) -> Quantizer:
        """Return how vectors such as ``rows``, ``(sample, dim)``, are stored; only int8 depends on them."""
        ranges = np.stack([rows.min(axis=0), rows.max(axis=0)]) if vectors == "int8" else None
        return cls(vectors, rows.shape[1], ranges)

    def apply(self, rows: Embeddings) -> npt.NDArray[Any]:
        """Return vectors ``(rows, dim)`` as they are stored; of binary ``(rows, bytes)``."""
        if self.vectors == "binary":
            stored: npt.NDArray[Any] = (np.packbits(rows > 0, axis=1) - 128).astype(np.int8)
        elif self.ranges is None:
            stored = rows.astype(self.vectors, copy=False)
        else:
            starts, steps = self._scale()
            stored = (np.clip(np.floor((rows - starts) / np.where(steps == 0, 1, steps)), 0, LEVELS) - 128).astype(
                np.int8
            )
        return stored

    def restore(self, stored: npt.NDArray[Any]) -> Embeddings:
        """Return vectors, float32 ``(rows, dim)``: of int8 the middle of each step, of binary 1 and -1."""
        if self.vectors == "binary":
            bits = np.unpackbits((stored.astype(np.int16) + 128).astype(np.uint8), axis=1, count=self.dim)
            return bits.astype(np.float32) * 2 - 1
        if self.ranges is None:
            return stored.astype(np.float32, copy=False)
        starts, steps = self._scale()
        return (starts + (stored.astype(np.float32) + np.float32(128.5)) * steps).astype(np.float32, copy=False)

    def _scale(self) -> tuple[Embeddings, Embeddings]:
        """Return where each dimension begins and how long a step is; 0 where all numbers were the same."""
        ranges = np.asarray(self.ranges, dtype=np.float32)
        steps: Embeddings = (ranges[1] - ranges[0]) / LEVELS
        return ranges[0], steps

    def to_json(self) -> bytes:
        """Return it as a line of JSON, from which every bit comes back."""
        ranges = None if self.ranges is None else self.ranges.tolist()
        return json.dumps({"vectors": self.vectors, "dim": self.dim, "ranges": ranges}).encode()

    @classmethod
    def from_json(cls, content: bytes, place: str) -> Quantizer:
        """Return what :meth:`to_json` gave; DataError for something else, read at ``place``."""
        try:
            found = parse_json(content)
            ranges = None if found["ranges"] is None else np.array(found["ranges"], dtype=np.float32)
            quantizer = cls(found["vectors"], int(found["dim"]), ranges)
            if (ranges is None) == (quantizer.vectors == "int8") or (ranges is not None and ranges.shape[0] != 2):
                raise ValueError("the ranges do not belong to the type")
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{place} does not say how the vectors are stored ({error}). Encode again.") from error
        return quantizer
