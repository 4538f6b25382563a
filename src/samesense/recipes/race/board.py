"""The leaderboard of a race, and which of its models are recommended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from samesense.choices import BackendOption
from samesense.execution.speed import ROUNDS, Speed
from samesense.execution.timing import clock_time
from samesense.reports.tables import markdown, markdown_table
from samesense.reports.verdict import speed_text
from samesense.results.markup import one_line, plain
from samesense.results.results import Results
from samesense.results.shown import Shown

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
        speed: sentences a second that it encodes on this machine: the median of ``rounds``, or, where there are none,
            as it was timed by itself, which decides nothing but how many steps fit the budget.
        megabytes: of its weights.
        steps: that it was trained; 0 for an untrained start.
        place: folder or name by which it is opened; ``None`` if it is not kept.
        backend: what computes it.
        rounds: sentences a second in each round in which models were timed in turns; none if it was not among them.
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
    backend: BackendOption = "auto"
    rounds: tuple[float, ...] = ()

    @property
    def timed(self) -> Speed | None:
        """Its speed with the range, if it was timed in turns with the others."""
        if not self.rounds:
            return None
        return Speed(tuple(self.rounds))

    @property
    def speed_text(self) -> str:
        """Return its speed in words: median and range, or marked where it was timed by itself."""
        if self.timed is None:
            return f"~{self.speed:,.0f}"
        return speed_text(self.timed)


def quality_of(lines: Sequence[Line]) -> Line:
    """Return the model with the best score on dev, of equal ones the smallest; smaller forms of it are for a CPU."""
    candidates = (line for line in lines if line.place and line.form in ("start", "trained"))
    return max(candidates, key=lambda line: (line.dev, -line.megabytes))


def good_enough(lines: Sequence[Line], drop: float) -> list[Line]:
    """Return the models that are kept and lose no more than ``drop`` (Spearman x100) on dev beside the best."""
    least = quality_of(lines).dev - drop / 100
    return [line for line in lines if line.place and line.dev >= least]


def cpu_of(lines: Sequence[Line], drop: float) -> Line:
    """Return the fastest of the models that are :func:`good_enough`; the best on dev if none is known to be faster.

    One is known to be faster where the ranges of the two do not overlap. Of those that may be as fast as the fastest,
    it is the best on dev.
    """
    best = quality_of(lines)
    # Without the range of the best, nothing is known to be faster.
    if best.timed is None:
        return best
    slowest = best.timed.high
    faster = {line: speed for line in good_enough(lines, drop) if (speed := line.timed) and speed.low > slowest}
    if not faster:
        return best
    first = max(faster.values(), key=lambda speed: speed.median)
    return max((line for line, speed in faster.items() if speed.overlaps(first)), key=lambda line: line.dev)


@dataclass(frozen=True, kw_only=True, repr=False)
class RaceResult(Shown):
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
        disturbed: why the machine was not quiet while speeds were measured, or nothing.
        next_step: how to train on the pairs that were held out too, or nothing.
    """

    folder: Path
    lines: list[Line]
    quality: Line
    cpu: Line
    spent: float
    budget: float
    test: Results = field(default_factory=Results)
    notes: list[str] = field(default_factory=list)
    disturbed: str = ""
    next_step: str = ""

    @property
    def model(self) -> Path:
        """Folder of the best model."""
        return self.folder / "model"

    @property
    def cpu_model(self) -> Path:
        """Folder of the model for a CPU."""
        if self.cpu == self.quality:
            return self.model
        return self.folder / "cpu"

    def table(self) -> str:
        """Return the best lines as a Markdown table, the recommended ones marked; Spearman x100."""
        return _aligned(_HEADER, [self._cells(line) for line in self._visible_lines()])

    def markdown(self) -> str:
        """Return the result as a page of Markdown, in which names are no markup."""
        table = markdown(_HEADER, [self._cells(line) for line in self._visible_lines()], numeric=_HEADER[2:-1])
        blocks = [table]
        if self.test:
            blocks.append(markdown_table(self.test))
        blocks.append("\n".join(f"- {plain(line)}" for line in self.describe()))
        return "\n\n".join(blocks) + "\n"

    def _visible_lines(self) -> list[Line]:
        # Recommended models are shown wherever they stand.
        return [line for index, line in enumerate(self.lines) if index < SHOWN or line in (self.quality, self.cpu)]

    def _cells(self, line: Line) -> list[str]:
        marks = [name for name, marked_line in (("quality", self.quality), ("CPU", self.cpu)) if marked_line == line]
        interval = f"{100 * line.low:.1f} to {100 * line.high:.1f}"
        figures = [f"{100 * line.dev:.2f}", interval, line.speed_text, f"{line.megabytes:.0f}", f"{line.steps:,}"]
        return [one_line(line.name), line.form, *figures, ", ".join(marks)]

    def describe(self) -> list[str]:
        """Return in words what is recommended, and what the time was used for."""
        too_high = "" if self.test else "; a test set would say by how much"
        return [
            *self.notes,
            f"quality: {self.quality.name} ({self.quality.form}): {self.model}",
            f"CPU: {self._about_cpu()}",
            *self._about_speeds(),
            f"dev selected, so that its scores are somewhat too high{too_high}",
            *filter(None, [self.next_step]),
            f"time: {clock_time(self.spent)} of {clock_time(self.budget)} used",
        ]

    def _about_cpu(self) -> str:
        """Return which model is for a CPU, and what it gains and loses beside the best."""
        if self.cpu == self.quality:
            return "the same; no other that loses little is known to be faster"
        faster = self.cpu.speed / self.quality.speed
        lost = 100 * (self.cpu.dev - self.quality.dev)
        speeds = f"{self.cpu.speed_text} against {self.quality.speed_text} sentences a second"
        gain = f"about {faster:.1f} times as fast ({speeds}), dev {lost:+.2f}"
        backend = f", with backend {self.cpu.backend}" if self.cpu.backend != "auto" else ""
        return f"{self.cpu.name} ({self.cpu.form}), {gain}: {self.cpu_model}{backend}"

    def _about_speeds(self) -> list[str]:
        """Return what speeds can be compared."""
        lines = []
        if any(line.timed for line in self._visible_lines()):
            lines.append(f"speeds: models timed in turns, median and range of {ROUNDS} rounds")
        if any(line.timed is None for line in self._visible_lines()):
            lines.append("a speed with ~ was timed by itself, for the plan of the race: it is not to be compared")
        if self.disturbed:
            lines.append(f"the machine was not quiet while speeds were measured ({self.disturbed}): compare ranges")
        return lines

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
            "disturbed": self.disturbed,
            "next_step": self.next_step,
        }

    def __str__(self) -> str:
        blocks = [self.table()]
        if self.test:
            blocks.append(str(self.test))
        return "\n\n".join([*blocks, "\n".join(self.describe())])


_HEADER = ["model", "form", "dev", "95 % interval", "sentences/s", "MB", "steps", "recommended"]


def _aligned(header: list[str], rows: list[list[str]]) -> str:
    """Return a Markdown table whose columns also stand below each other in a terminal, figures flush right."""
    # Figures begin with dev; the last column is text again.
    figures = range(header.index("dev"), len(header) - 1)
    columns = []
    for column, cells in enumerate(zip(header, *rows, strict=True)):
        width = max(map(len, cells))
        if column in figures:
            rule = "-" * (width - 1) + ":"
            aligned = [cell.rjust(width) for cell in cells]
        else:
            rule = "-" * width
            aligned = [cell.ljust(width) for cell in cells]
        columns.append([aligned[0], rule, *aligned[1:]])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in zip(*columns, strict=True))
