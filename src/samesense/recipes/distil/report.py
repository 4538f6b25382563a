"""What a student kept of its teachers' quality, and gained in speed and size: a table, in the manifest and the card."""

from __future__ import annotations

import logging
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn

from samesense.data import PairData
from samesense.encoder.assembly.build import build
from samesense.encoder.assembly.students import is_model
from samesense.encoder.encode import as_encode
from samesense.encoder.forward.precision import inference_precision
from samesense.evaluation.sts import evaluate_pairs
from samesense.execution.speed import ROUNDS, Speed, time_in_turns
from samesense.inference.models.load import load
from samesense.recipes.distil.settings import DistilSettings
from samesense.reports.tables import markdown
from samesense.results.markup import plain
from samesense.types import Encode, Result

logger = logging.getLogger(__name__)

TIMED = 512
"""Sentences encoded by each model in a round."""

KEPT = "distilled"
"""Key of the report in the manifest of a run."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One model of the table."""

    model: str
    spearman: dict[str, float]  # by data set, in [-1, 1]; empty without labelled pairs
    parameters: int  # how many it has
    megabytes: float  # of its weights in memory
    sentences_per_second: tuple[float, float, float]  # median over the rounds, the slowest and the fastest
    # how many times as fast the student is, median over the rounds, least and most; None for the student
    faster: tuple[float, float, float] | None = None
    # mean Spearman of the student as a share of this model's; None for the student, without pairs, and where
    # this model's is not above 0
    retained_share: float | None = None


@dataclass(frozen=True)
class StudentReport:
    """The student first, then its teachers; the figures behind it; what was not evaluated; how it was timed."""

    lines: list[Line]
    results: list[Result]
    notes: list[str]

    def table(self, *, marked: bool = True) -> str:
        """Return the lines as a Markdown table; Spearman x100. Names are escaped unless ``marked``."""
        names = list(self.lines[0].spearman)
        numeric = [*names, *_FIGURES]
        if len(names) > 1:
            numeric.insert(len(names), "mean")
        if not names:
            numeric.remove("quality kept")
        return markdown(
            ["model", *numeric], [_cells(line, numeric) for line in self.lines], numeric=numeric, marked=marked
        )

    def text(self) -> str:
        """Return table and notes."""
        return "\n\n".join([self.table(), *self.notes])

    def section(self) -> str:
        """Return table and notes for a card, in which names are no markup."""
        return "\n\n".join([self.table(marked=False), *map(plain, self.notes)])

    def content(self) -> dict[str, Any]:
        """Return what the manifest says of it."""
        return {"models": [asdict(line) for line in self.lines], "notes": self.notes}


_FIGURES = ("quality kept", "times as fast", "sentences/s", "M parameters", "MB")


def report_student(
    output: Path, settings: DistilSettings, texts: Sequence[str], evaluated: Sequence[PairData]
) -> StudentReport:
    """Evaluate and time the student in ``output/model`` and its teachers.

    Quality is Spearman of cosines in float32. Speed is that of all of them on the same sentences, in turns, in the
    arithmetic that ``samesense encode`` would use.
    """
    names = [str(output), *(name for name in settings.teacher if is_model(name))]
    notes = [f"Not evaluated, as it is no model: {name}." for name in settings.teacher if not is_model(name)]
    models = [build(names[0]), *(build(name, pooling=settings.teacher_pooling) for name in names[1:])]
    logger.info(f"evaluating and timing the student and {len(models) - 1} of {len(settings.teacher)} teachers")
    seeds = [settings.seed, *(None for _ in names[1:])]  # teachers were not trained here
    results: list[Result] = []
    spearman = []
    for name, model, seed in zip(names, models, seeds, strict=True):
        scorer = load(model, name=name, precision="float32", seed=seed)
        figures = {}
        for data in evaluated:
            dataset_results = evaluate_pairs(scorer, data)
            results += dataset_results
            figures[data.name] = _whole(dataset_results)
        spearman.append(figures)
    sample = list(texts[:: max(1, len(texts) // TIMED)][:TIMED])
    speeds, disturbed = time_in_turns([_reading(as_encode(model), sample) for model in models])
    arithmetic = inference_precision("auto", models[0].device)
    notes.append(
        f"Spearman x100 of cosines in float32. Speed: {len(sample)} training sentences, {arithmetic}, "
        f"{models[0].device.type}, models in turns, median and range of {ROUNDS} rounds."
    )
    if disturbed:
        notes.append(f"The machine was not quiet while speeds were measured ({disturbed}): compare ranges.")
    lines: list[Line] = []
    for name, model, figures, model_speed in zip(["student", *names[1:]], models, spearman, speeds, strict=True):
        line = _line(name, model, figures, model_speed)
        if lines:  # a teacher, with which the student is compared
            faster = _with_range(_ratios(speeds[0], model_speed))
            line = replace(line, faster=faster, retained_share=_share(spearman[0], figures))
        lines.append(line)
    return StudentReport(lines, results, notes)


def _line(name: str, model: nn.Module, spearman: dict[str, float], speed: Speed) -> Line:
    """Return the line of a model, not compared with another."""
    parameters = list(model.parameters())
    return Line(
        model=name,
        spearman=spearman,
        parameters=sum(parameter.numel() for parameter in parameters),
        megabytes=sum(parameter.numel() * parameter.element_size() for parameter in parameters) / 1e6,
        sentences_per_second=_with_range(speed),
    )


def _reading(encode: Encode, texts: Sequence[str]) -> Callable[[], int]:
    """Return what encodes texts and says how many they are, warmed up."""
    encode(texts)

    def read() -> int:
        encode(texts)
        return len(texts)

    return read


def _ratios(student: Speed, teacher: Speed) -> Speed:
    """Return how many times as fast the student was in each round."""
    return Speed(
        tuple(student_speed / theirs for student_speed, theirs in zip(student.rounds, teacher.rounds, strict=True))
    )


def _with_range(speed: Speed) -> tuple[float, float, float]:
    return speed.median, speed.low, speed.high


def _whole(results: Sequence[Result]) -> float:
    return next(result.value for result in results if result.metric == "spearman" and result.subset == "all")


def _share(student: dict[str, float], teacher: dict[str, float]) -> float | None:
    if not student or statistics.mean(teacher.values()) <= 0:
        return None
    return statistics.mean(student.values()) / statistics.mean(teacher.values())


def _cells(line: Line, columns: Sequence[str]) -> list[str]:
    figures = {name: f"{100 * value:.2f}" for name, value in line.spearman.items()}
    if line.spearman:
        figures["mean"] = f"{100 * statistics.mean(line.spearman.values()):.2f}"
    figures |= {"quality kept": "-", "times as fast": "-"}  # those of the student, which is compared with the others
    if line.retained_share is not None:
        figures["quality kept"] = f"{100 * line.retained_share:.1f} %"
    if line.faster is not None:
        figures["times as fast"] = "{:.2f} ({:.2f} to {:.2f})".format(*line.faster)
    figures["sentences/s"] = "{:,.0f} ({:,.0f} to {:,.0f})".format(*line.sentences_per_second)
    figures["M parameters"] = f"{line.parameters / 1e6:.1f}"
    figures["MB"] = f"{line.megabytes:.0f}"
    return [line.model, *(figures[name] for name in columns)]
