"""What every kind of training data has in common, whatever stands in a row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Self


class Examples(Protocol):
    """Training data of one source: rows that can be counted, taken, and told from others by a fingerprint."""

    @property
    def source(self) -> str:
        """The file or name as the user gave it."""

    @property
    def name(self) -> str:
        """Short name for people."""

    @property
    def sha256(self) -> str:
        """Fingerprint of the content in order."""

    def __len__(self) -> int: ...

    def take(self, indices: Iterable[int]) -> Self:
        """Return the rows at these positions, in the order given."""
