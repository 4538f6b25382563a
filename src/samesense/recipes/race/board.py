"""The leaderboard of a race, and which of its models are recommended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from samesense.execution.progress import clock_time
from samesense.results import Results

SHOWN = 12
"""Lines of the leaderboard that are printed: the best ones."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One model of the leaderboard.

    Attributes:
        name: start model and settings, or the form of the winner.
        form: ``"start"`` (untrained), ``"trained"``, ``"int8"``, ``"layers"`` or ``"static"``.
        dev: Spearman on dev, which selected.
        low: lower end of its 95 % interval.
        high: upper end.
        speed: sentences a second that it encodes on this machine.
        megabytes: of its weights.
        steps: that it was trained; 0 for an untrained start.
        place: folder or name by which it is opened; ``None`` if it is not kept.
    """

    name: str
    form: str
    dev: float
    low: float
    high: float
    speed: float
    megabytes: float
    steps: int
    place: str | None


CLEARLY = 1.25
"""Ratio of two speeds that were not measured in turns from which one model is called faster."""


def quality_of(lines: Sequence[Line]) -> Line:
    """Return the model with the best score on dev, of equal ones the fastest; smaller forms of it are for a CPU."""
    own = (line for line in lines if line.place and line.form in ("start", "trained"))
    return max(own, key=lambda line: (line.dev, line.speed))


def cpu_of(lines: Sequence[Line], drop: float) -> Line:
    """Return the fastest model that loses no more than ``drop`` (Spearman x100) on dev beside the best."""
    least = quality_of(lines).dev - drop / 100
    return max((line for line in lines if line.place and line.dev >= least), key=lambda line: (line.speed, line.dev))


@dataclass(frozen=True, kw_only=True)
class RaceResult:
    """What a race has found; prints as a table.

    Attributes:
        folder: of the race; ``model`` in it is the best, ``cpu`` the one for a CPU if that is another.
        lines: the leaderboard, best first.
        quality: the best on dev.
        cpu: the fastest that loses little.
        test: figures of these two on test, if there is one.
        spent: seconds used.
        budget: seconds there were.
        notes: what was left out, in words.
    """

    folder: Path
    lines: list[Line]
    quality: Line
    cpu: Line
    spent: float
    budget: float
    test: Results = field(default_factory=Results)
    notes: list[str] = field(default_factory=list)

    @property
    def model(self) -> Path:
        """Folder of the best model."""
        return self.folder / "model"

    @property
    def cpu_model(self) -> Path:
        """Folder of the model for a CPU."""
        return self.model if self.cpu == self.quality else self.folder / "cpu"

    def table(self) -> str:
        """Return the best lines as a Markdown table, the recommended ones marked; Spearman x100."""
        shown = [line for at, line in enumerate(self.lines) if at < SHOWN or line in (self.quality, self.cpu)]
        header = ["model", "form", "dev", "95 % interval", "sentences/s", "MB", "steps", "recommended"]
        return _aligned(header, [self._cells(line) for line in shown])

    def _cells(self, line: Line) -> list[str]:
        marks = [name for name, own in (("quality", self.quality), ("CPU", self.cpu)) if own == line]
        interval = f"{100 * line.low:.1f} to {100 * line.high:.1f}"
        figures = [f"{100 * line.dev:.2f}", interval, f"{line.speed:,.0f}", f"{line.megabytes:.0f}", f"{line.steps:,}"]
        return [line.name, line.form, *figures, ", ".join(marks)]

    def said(self) -> list[str]:
        """Return, for people, what is recommended, and what the time was used for."""
        opened = ", with backend onnx-int8" if self.cpu.form == "int8" else ""
        faster, lost = self.cpu.speed / self.quality.speed, 100 * (self.cpu.dev - self.quality.dev)
        gain = f"about {faster:.1f} times as fast" if faster >= CLEARLY else "hardly faster"
        gain += f" (each timed by itself; compare times them in turns), dev {lost:+.2f}"
        other = f"{self.cpu.name} ({self.cpu.form}), {gain}: {self.cpu_model}{opened}"
        too_high = "" if self.test else "; a test set would say by how much"
        return [
            *self.notes,
            f"quality: {self.quality.name} ({self.quality.form}): {self.model}",
            f"CPU: {'the same' if self.cpu == self.quality else other}",
            f"dev selected, so that its scores are somewhat too high{too_high}",
            f"time: {clock_time(self.spent)} of {clock_time(self.budget)} used",
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        return {
            "lines": [asdict(line) for line in self.lines],
            "quality": {**asdict(self.quality), "folder": str(self.model)},
            "cpu": {**asdict(self.cpu), "folder": str(self.cpu_model)},
            "test": self.test.to_dicts(),
            "spent": round(self.spent, 1),
            "budget": self.budget,
            "notes": self.notes,
        }

    def __str__(self) -> str:
        return "\n\n".join([self.table(), *([str(self.test)] if self.test else []), "\n".join(self.said())])

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


def _aligned(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table whose columns also stand below each other in a terminal, figures flush right."""
    texts = header.index("dev")
    widths = [max(len(row[at]) for row in [header, *rows]) for at in range(len(header))]
    last = len(header) - 1

    def line(row: list[str]) -> str:
        cells = [
            cell.rjust(width) if texts <= at < last else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        return f"| {' | '.join(cells)} |"

    rule = ["-" * (width - 1) + ":" if texts <= at < last else "-" * width for at, width in enumerate(widths)]
    return "\n".join([line(header), line(rule), *map(line, rows)])
