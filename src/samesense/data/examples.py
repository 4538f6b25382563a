"""What all kinds of training data have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, Self


class Examples(Protocol):
    """Training data of one source, with a length, a selection of rows, and a fingerprint."""

    @property
    def source(self) -> str:
        """The file or name as the user gave it."""

    @property
    def name(self) -> str:
        """Short name for display."""

    @property
    def sha256(self) -> str:
        """Fingerprint of the content in order."""

    def __len__(self) -> int: ...

    def take(self, indices: Iterable[int]) -> Self:
        """Return the rows at these positions, in the order given."""
