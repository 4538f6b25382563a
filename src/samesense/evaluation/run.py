"""Evaluates models on tasks; each model encodes every distinct text once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from samesense.errors import DataError, ModelError
from samesense.evaluation.task import Task
from samesense.execution.progress import progress_bar, stage
from samesense.execution.speed import Speed
from samesense.results.results import Results
from samesense.types import Evidence, Pair, Result, Scorer, Scores

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The measured cost of a model."""

    computed: str  # device, precision and number of threads, in words
    speed: Speed | None = None  # evaluated sentences per second; both sentences of a pair count
    disturbed: str = ""  # why the machine was busy when the speed was measured, in words
    parameters: int | None = None  # number of weights, if known
    megabytes: float | None = None  # size of the weights on disk (10^6 bytes), if they are on disk
    memory: float | None = None  # peak memory of a separate process (10^6 bytes), if measured


MeasureCosts = Callable[[Sequence[tuple[str, Scorer]], Sequence[str]], Sequence[Cost]]
"""Maps models, each with the user's name for it, and the evaluated texts to the cost of each model."""


@dataclass(frozen=True, kw_only=True)
class EvaluatedModel:
    """A model, and the time that its evaluation took."""

    name: str  # its name in the results
    spec: str  # the model as the user named it
    protocol: str  # everything about it that affects figures
    seed: int | None = None  # seed of the training run, if known
    texts: int = 0  # number of distinct texts whose vectors were needed
    remembered: int = 0  # number of these texts that were encoded before
    encoding: float = 0.0  # seconds to encode the other texts; later steps use the same vectors
    seconds: dict[str, float] = field(default_factory=dict)  # wall time of each suite
    cost: Cost | None = None  # its cost, if measured


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A data set on which a model could not be evaluated, or for which training failed, and why."""

    model: str
    task: str
    dataset: str
    reason: str
    seed: int | None = None  # seed of the training run, if known
    trained: bool = True  # whether there is a model; otherwise its training failed


@dataclass
class Evaluations:
    """The evaluations of several models."""

    models: list[EvaluatedModel] = field(default_factory=list)  # in the order given
    results: Results = field(default_factory=Results)  # of every model, task by task
    evidence: list[Evidence] = field(default_factory=list)  # the values that the results summarize
    failures: list[Failure] = field(default_factory=list)  # tasks on which a model failed
    notes: list[str] = field(default_factory=list)  # tasks that were not run with a model, and why
    # by model with embeddings, the similarity of every ordered pair of the chosen sentences
    sentences: dict[str, Scores] = field(default_factory=dict)


def evaluate_candidates(
    candidates: list[tuple[str, Scorer]],
    tasks: Sequence[Task],
    *,
    sentences: Sequence[str] = (),
    costs: MeasureCosts | None = None,
    then: Callable[[Scorer, Sequence[Result], Sequence[Evidence]], None] | None = None,
) -> Evaluations:
    """Evaluate every model on every task that it supports.

    If a model fails on a task (NaN or constant scores), the reason is recorded and there is no figure. A model is
    dropped after its evaluation, so that its memory is free for the next. ``candidates`` are the models, each with the
    user's name for it; the list is emptied. ``costs`` are measured first, while all models are loaded, because their
    speeds are measured in turns. ``then`` is called with a model, its results and its evidence before it is dropped.
    """
    evaluations = Evaluations()
    pairs = [(first, second) for first in sentences for second in sentences]
    count = len(candidates)
    measured: list[Cost | None] = [None] * count
    if costs is not None:
        with stage("measuring speeds in turns"):
            measured = [*costs(candidates, list(dict.fromkeys(_all_texts(tasks, pairs))))]
    while candidates:
        # Taken off the list, which would otherwise keep every model in memory.
        spec, candidate = candidates.pop(0)
        logger.info(f"model {count - len(candidates)} of {count}: {candidate.name}")
        results_before = len(evaluations.results)
        evidence_before = len(evaluations.evidence)
        _evaluate_model(spec, candidate, tasks, pairs, evaluations, measured.pop(0))
        if then is not None:
            then(candidate, evaluations.results[results_before:], evaluations.evidence[evidence_before:])
    return evaluations


def _evaluate_model(
    spec: str,
    candidate: Scorer,
    tasks: Sequence[Task],
    pairs: Sequence[Pair],
    evaluations: Evaluations,
    cost: Cost | None,
) -> None:
    fitting = [task for task in tasks if candidate.embeds or not task.embeds]
    for suite in dict.fromkeys(task.suite for task in tasks if task not in fitting):
        evaluations.notes.append(f"{suite}: not run with {candidate.name}, which scores pairs and gives no embeddings.")
    started = time.perf_counter()
    texts, encoded = _encode_together(candidate, _all_texts(fitting, pairs))
    encoding = time.perf_counter() - started
    seconds: dict[str, float] = {}
    for task in fitting:
        started = time.perf_counter()
        try:
            with stage(f"{candidate.name} on {task.suite} {task.dataset}"):
                outcome = task.evaluate(candidate)
        except (DataError, ModelError) as error:
            evaluations.failures.append(
                Failure(
                    model=candidate.name,
                    task=task.suite,
                    dataset=task.dataset,
                    reason=str(error),
                    seed=candidate.seed,
                )
            )
        else:
            evaluations.results += outcome.results
            evaluations.evidence += outcome.evidence
        seconds[task.suite] = seconds.get(task.suite, 0.0) + time.perf_counter() - started
    # Seeds share a name, and the first of them is drawn.
    if pairs and candidate.embeds and candidate.name not in evaluations.sentences:
        try:
            evaluations.sentences[candidate.name] = candidate.scores(pairs)
        except (DataError, ModelError) as error:
            evaluations.notes.append(f"heatmap: without {candidate.name}. {error}")
    evaluations.models.append(
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


def _all_texts(tasks: Sequence[Task], pairs: Sequence[Pair]) -> Iterator[str]:
    for task in tasks:
        yield from task.texts()
    # Every sentence is paired with every other, so that the first ones are all of them.
    for first, _ in pairs:
        yield first


def _encode_together(candidate: Scorer, texts: Iterator[str]) -> tuple[int, int]:
    """Encode all texts together, if the candidate caches embeddings.

    Returns the number of distinct texts, and of those that were not cached before. If encoding fails, the tasks that
    need the embeddings report the error.
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
