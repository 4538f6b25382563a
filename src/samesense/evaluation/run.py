"""Evaluate models on tasks, each distinct text encoded once a model."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from samesense.errors import DataError, ModelError
from samesense.evaluation.task import Task
from samesense.execution.progress import progress_bar, stage
from samesense.execution.speed import Speed
from samesense.results import Results
from samesense.types import Evidence, Pair, Result, Scorer, Scores

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a model costs where it was measured."""

    computed: str  # by what, in which arithmetic and on how many threads, in words
    speed: Speed | None = None  # sentences a second, of the evaluated ones; of a pair each counts
    disturbed: str = ""  # why the machine was not quiet when the speed was measured, in words
    parameters: int | None = None  # numbers in its weights, where they are known
    megabytes: float | None = None  # its weights on disk (10^6 bytes), where they are
    memory: float | None = None  # peak of a process of its own (10^6 bytes), where it was measured


MeasureCosts = Callable[[Sequence[tuple[str, Scorer]], Sequence[str]], Sequence[Cost]]
"""What the user gave with the models it names, and the evaluated texts in; the cost of each model out."""


@dataclass(frozen=True, kw_only=True)
class EvaluatedModel:
    """A model, and the time that its evaluation took."""

    name: str  # what the results call it
    spec: str  # what the user gave
    protocol: str  # everything about it that changes a figure
    seed: int | None = None  # of the training run, where known
    texts: int = 0  # distinct texts whose vectors were needed
    remembered: int = 0  # of these, how many were encoded before
    encoding: float = 0.0  # seconds that the others took; later steps use the same vectors
    seconds: dict[str, float] = field(default_factory=dict)  # wall time of each suite
    cost: Cost | None = None  # where it was measured


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A data set on which a model could not be evaluated, or for which there is no model, and why."""

    model: str
    task: str
    dataset: str
    reason: str
    seed: int | None = None  # of the training run, where known
    trained: bool = True  # whether there is a model; else its training failed


@dataclass
class Evaluations:
    """The evaluations of several models."""

    models: list[EvaluatedModel] = field(default_factory=list)  # in the order given
    results: Results = field(default_factory=Results)  # of every model, task by task
    evidence: list[Evidence] = field(default_factory=list)  # what lies behind them
    failures: list[Failure] = field(default_factory=list)  # tasks on which a model failed
    notes: list[str] = field(default_factory=list)  # tasks that were not run with a model, and why
    # for each model that embeds, the similarity of every ordered pair of the chosen sentences
    sentences: dict[str, Scores] = field(default_factory=dict)


def evaluate_candidates(
    opened: list[tuple[str, Scorer]],
    tasks: Sequence[Task],
    *,
    sentences: Sequence[str] = (),
    costs: MeasureCosts | None = None,
    then: Callable[[Scorer, Sequence[Result], Sequence[Evidence]], None] | None = None,
) -> Evaluations:
    """Evaluate every model on every task that it can do.

    A task that a model fails (a NaN, constant scores) is recorded with its reason and has no figure. A model is dropped
    once it is evaluated, so that its memory is free for the next. ``opened`` holds what the user gave and the model it
    names, and is emptied. ``costs`` are measured first, while all models are there, as speeds are compared in turns.
    ``then`` is called with a model, its results and its evidence before it is dropped.
    """
    found = Evaluations()
    pairs = [(first, second) for first in sentences for second in sentences]
    count = len(opened)
    measured: list[Cost | None] = [None] * count
    if costs is not None:
        with stage("measuring speeds in turns"):
            measured = [*costs(opened, list(dict.fromkeys(_texts(tasks, pairs))))]
    while opened:
        spec, candidate = opened.pop(0)
        logger.info(f"model {count - len(opened)} of {count}: {candidate.name}")
        before = len(found.results), len(found.evidence)
        _evaluate_model(spec, candidate, tasks, pairs, found, measured.pop(0))
        if then is not None:
            then(candidate, found.results[before[0] :], found.evidence[before[1] :])
    return found


def _evaluate_model(
    spec: str,
    candidate: Scorer,
    tasks: Sequence[Task],
    pairs: Sequence[Pair],
    found: Evaluations,
    cost: Cost | None,
) -> None:
    fitting = [task for task in tasks if candidate.embeds or not task.embeds]
    for suite in dict.fromkeys(task.suite for task in tasks if task not in fitting):
        found.notes.append(f"{suite}: not run with {candidate.name}, which scores pairs and gives no embeddings.")
    started = time.perf_counter()
    texts, encoded = _encode_together(candidate, _texts(fitting, pairs))
    encoding = time.perf_counter() - started
    seconds: dict[str, float] = {}
    for task in fitting:
        started = time.perf_counter()
        try:
            with stage(f"{candidate.name} on {task.suite} {task.dataset}"):
                outcome = task.evaluate(candidate)
        except (DataError, ModelError) as error:
            reason, seed = str(error), candidate.seed
            found.failures.append(
                Failure(model=candidate.name, task=task.suite, dataset=task.dataset, reason=reason, seed=seed)
            )
        else:
            found.results += outcome.results
            found.evidence += outcome.evidence
        seconds[task.suite] = seconds.get(task.suite, 0.0) + time.perf_counter() - started
    if pairs and candidate.embeds and candidate.name not in found.sentences:
        try:
            found.sentences[candidate.name] = candidate.scores(pairs)
        except (DataError, ModelError) as error:
            found.notes.append(f"heatmap: without {candidate.name}. {error}")
    found.models.append(
        EvaluatedModel(
            name=candidate.name,
            spec=spec,
            protocol=candidate.protocol,
            seed=candidate.seed,
            texts=texts,
            remembered=texts - encoded,
            encoding=encoding,
            seconds=seconds,
            cost=cost,
        )
    )


def _texts(tasks: Sequence[Task], pairs: Sequence[Pair]) -> Iterator[str]:
    for task in tasks:
        yield from task.texts()
    for first, _ in pairs:
        yield first


def _encode_together(candidate: Scorer, texts: Iterator[str]) -> tuple[int, int]:
    """Encode all texts together, if the candidate caches them.

    Returned are how many distinct ones there are, and how many of them were not encoded before. What cannot be encoded
    is left for the tasks that need it, which say why.
    """
    if not candidate.embeds:
        return 0, 0
    distinct = list(dict.fromkeys(texts))
    with progress_bar(f"encode by {candidate.name}", "text", len(distinct), leave=False) as bar:
        try:
            encoded = candidate.fill(distinct, on_progress=bar.update)
        except ModelError:
            return 0, 0
    return len(distinct), encoded
