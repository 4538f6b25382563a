"""The result of a training: figures, and lines to print."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from samesense.execution.timing import time_summary
from samesense.reports.run_verdict import CROSS_FITTED, Verdict
from samesense.results.results import Results
from samesense.results.shown import Shown

if TYPE_CHECKING:
    from samesense.training.fit import TrainOutput


@dataclass(frozen=True, repr=False)
class TrainingRun(Shown):
    """A finished or interrupted training; shown as a table of its results.

    Attributes:
        folder: run folder.
        output: steps, seconds, precision, and the best dev score.
        results: figures on test, before and after, and those that the method adds.
        spent: seconds of this call, by what they were spent on.
        verdict: whether the model is better than its untouched start; ``None`` for a run that was interrupted.
        calibrates_on: pairs with scores in the folder that a calibration can be made of.
    """

    folder: Path
    output: TrainOutput
    results: Results
    spent: Mapping[str, float] = field(default_factory=dict)
    verdict: Verdict | None = None
    calibrates_on: int = 0

    @property
    def model(self) -> Path:
        """Folder of the trained model; absent if the run was interrupted."""
        return self.folder / "model"

    def lines(self) -> list[str]:
        """Return in words how the training ended."""
        if self.output.interrupted:
            return [f"interrupted at step {self.output.steps}; everything is kept, and resume goes on"]
        lines = [f"trained {self.output.steps} steps in {self.output.precision}"]
        if self.output.best_dev_spearman is not None:
            best = 100 * self.output.best_dev_spearman
            lines.append(f"best dev Spearman {best:.2f} at step {self.output.best_step}")
        if self.spent:
            lines.append(time_summary(self.spent))
        return [*lines, f"model: {self.model}"]

    def conclusion(self) -> list[str]:
        """Return in words whether the model is better than its start, and where that is shown."""
        if self.output.interrupted:
            return []
        start = self.output.start_dev_spearman
        best = self.output.best_dev_spearman
        lines = []
        task = None
        if self.verdict is not None:
            lines = self.verdict.lines()
            task = self.verdict.task
        # beside a verdict on the same pairs, their optimistic figure would only confuse
        if start is not None and best is not None and (task is None or task.role != CROSS_FITTED):
            lines.append(f"dev, which selected: {change(start, best)}")
        if self.calibrates_on:
            lines.append(
                f"next: samesense calibrate {quote(str(self.folder))} finds what its scores mean, by "
                f"{self.calibrates_on:,} pairs whose scores were kept"
            )
        elif task is not None and task.metric == "accuracy" and task.role != "held-out sections":
            lines.append(
                f"next: in Python, samesense.SentenceEncoder({str(self.folder)!r}) makes the features by which a "
                "classifier of scikit-learn predicts the classes of other texts"
            )
        page = self.folder / "report.html"
        if page.is_file():
            lines.append(f"report: {page}")
        return lines

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the results and, last, the verdict, as plain JSON types."""
        rows = self.results.to_dicts()
        if self.verdict is not None:
            rows.append(self.verdict.to_dict())
        return rows

    def __str__(self) -> str:
        lines = self.lines()
        if self.results:
            lines.append(str(self.results))
        return "\n".join([*lines, *self.conclusion()])

    def _repr_html_(self) -> str:
        results = self.results._repr_html_() if self.results else ""
        ended = escape("\n".join(self.conclusion()))  # a table among its lines
        return f"<p>{'<br>'.join(map(escape, self.lines()))}</p>\n{results}\n<pre>{ended}</pre>"


def change(before: float, after: float) -> str:
    """Return the difference of two correlations, and both, x100."""
    return f"{100 * (after - before):+.2f} ({100 * before:.2f} to {100 * after:.2f})"
