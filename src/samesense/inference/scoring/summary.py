"""The summary of a scored table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from samesense.failures import abridged

SHOWN = 10
"""Most rows without two texts whose numbers are shown."""


@dataclass(frozen=True)
class Scored:
    """The summary of a scored table. Prints as a line.

    Attributes:
        source: name of the table.
        rows: number of rows, blank ones included.
        without: numbers of the rows without two texts, as the source counts them.
        compared: the columns whose texts were compared.
        columns: the names of the new columns.
        threshold: the score from which on two texts are the same, if there is one.
        same: number of pairs that are the same; ``None`` without a threshold.
        output: the file that was written, ``"-"`` for standard output, ``""`` for none.
    """

    source: str
    rows: int
    without: tuple[int, ...]
    compared: tuple[str, str]
    columns: tuple[str, ...]
    threshold: float | None
    same: int | None
    output: str

    @property
    def scored(self) -> int:
        """Number of rows with a score."""
        return self.rows - len(self.without)

    def __str__(self) -> str:
        """Return how many rows were scored, and the output, as a line of text."""
        line = f"{self.source}: {self.scored} of {self.rows} rows scored, {self.compared[0]} with {self.compared[1]}"
        if self.threshold is not None:
            line += f"; {self.same} are the same, at a score of {self.threshold:.4g} or more"
        if self.output not in ("", "-"):
            line += f". Written: {self.output}"
        return line

    def to_dict(self) -> dict[str, Any]:
        """Return the counts as plain JSON types."""
        return {
            "rows": self.rows,
            "scored": self.scored,
            "without": list(self.without),
            "compared": list(self.compared),
            "columns": list(self.columns),
            "threshold": self.threshold,
            "same": self.same,
            "output": self.output,
        }


def missing_texts(source: str, rows: int, numbers: Sequence[int]) -> str:
    """Return a message that lists the rows of a table without two texts."""
    verb = "has" if len(numbers) == 1 else "have"
    return (
        f"{source}: {len(numbers)} of {rows} rows {verb} no two texts to compare, and so no score: "
        f"row {abridged(numbers, SHOWN)}. They stay as they are."
    )
