"""What a training leaves, for people and programs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from samesense.execution.progress import where_time_went
from samesense.results import Results

if TYPE_CHECKING:
    from samesense.training.fit import TrainOutput


@dataclass(frozen=True)
class TrainingRun:
    """A finished or interrupted training; shown as a table of its results.

    Attributes:
        folder: run folder.
        output: steps, seconds, precision, and the best dev score.
        results: figures on test, before and after, and those that the method adds.
        spent: seconds of this call, by what they were spent on.
    """

    folder: Path
    output: TrainOutput
    results: Results
    spent: Mapping[str, float] = field(default_factory=dict)

    @property
    def model(self) -> Path:
        """Folder of the trained model; absent if the run was interrupted."""
        return self.folder / "model"

    def lines(self) -> list[str]:
        """Return, for people, how the training ended."""
        if self.output.interrupted:
            return [f"interrupted at step {self.output.steps}; everything is kept, and resume goes on"]
        said = [f"trained {self.output.steps} steps in {self.output.precision}"]
        if self.output.best_dev_spearman is not None:
            best = 100 * self.output.best_dev_spearman
            said.append(f"best dev Spearman {best:.2f} at step {self.output.best_step}")
        spent = [where_time_went(self.spent)] if self.spent else []
        return [*said, *spent, f"model: {self.model}"]

    def gain(self) -> str:
        """Return, in a line for people, what the trained model gained over its start, in Spearman x100."""
        start, best = self.output.start_dev_spearman, self.output.best_dev_spearman
        shown = [one for one in self.results if (one.metric, one.subset, one.task) == ("spearman", "all", "sts")]
        found = [
            f"{change(own[0].value, own[-1].value)} on {name}"
            for name in dict.fromkeys(one.dataset for one in shown)
            if (own := [one for one in shown if one.dataset == name])[0].model != own[-1].model
        ]
        if start is not None and best is not None:
            found.append(f"{change(start, best)} on dev, which selected")
        if not shown:
            found.append("on test not known: give --test")
        elif not any(one.model != shown[0].model for one in shown):
            found.append("on test not known: the start had no score of its own, as its head is new")
        return f"gain over the start: {'; '.join(found)}"

    def __str__(self) -> str:
        shown = [*self.lines(), *([str(self.results)] if self.results else [])]
        return "\n".join([*shown, *([] if self.output.interrupted else [self.gain()])])

    def _repr_html_(self) -> str:
        said = "<br>".join(map(escape, [*self.lines(), *([] if self.output.interrupted else [self.gain()])]))
        return f"<p>{said}</p>\n{self.results._repr_html_() if self.results else ''}"


def change(before: float, after: float) -> str:
    """Return the difference of two correlations, and both, x100."""
    return f"{100 * (after - before):+.2f} ({100 * before:.2f} to {100 * after:.2f})"
