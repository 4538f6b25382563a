"""Judge several models on the same tasks, each distinct text encoded once a model."""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from samesense.errors import ConfigError, DataError, ModelError
from samesense.execution.progress import progress_bar
from samesense.recipes.open_model import open_named
from samesense.reports.content import Judged
from samesense.reports.grid import Failure
from samesense.types import Candidate, Evidence, Pair, Precision, Result, Scores, Task

logger = logging.getLogger(__name__)


_NAMED = re.compile(r"(?P<name>[^=/:]+)=(?P<spec>.+)")
_PATH = re.compile(r"(?P<kind>(?:vectors|words|origin):)?(?P<path>[^+?]*[/\\][^+?]*)(?P<rest>.*)")


@dataclass
class Verdicts:
    """What several models were found to be.

    Attributes:
        models: in the order given.
        results: of every model, task by task.
        evidence: what lies behind them.
        failures: tasks that could not be judged with a model.
        notes: tasks that were not run with a model, and why.
        sentences: for each model that embeds, the similarity of every ordered pair of the chosen sentences.
    """

    models: list[Judged] = field(default_factory=list)
    results: list[Result] = field(default_factory=list)
    evidence: list[Evidence] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    sentences: dict[str, Scores] = field(default_factory=dict)


def open_models(
    specs: Sequence[str],
    *,
    precision: Precision = "float32",
    fit_texts: Sequence[str] | None = None,
    cache: Path | None = None,
) -> list[tuple[str, Candidate]]:
    """Open every model before any is judged, so that a misspelt one costs nothing.

    Args:
        specs: what ``open_named`` takes, each with a name of its own before it if wanted: ``NAME=SPEC``. Models
            of one name are seeds of one thing. The seed of a run folder is read from it.
        precision: arithmetic of models.
        fit_texts: unlabelled texts for whitening and flow.
        cache: folder in which embeddings are kept between runs.

    Returns:
        What was given, and what it opened, in order.

    Raises:
        ConfigError: if two models have the same name and seed.
        ModelError: if one cannot be read.
    """
    names = _names(specs)
    seeds = [_seed(spec) for _, spec in names]
    keys = [(name, seed) for (name, _), seed in zip(names, seeds, strict=True)]
    for key in keys:
        if keys.count(key) > 1:
            raise ConfigError(
                f"Each model needs a name or a seed of its own; two are {key[0]!r} with seed {key[1]}. Name them as in "
                "first=FOLDER second=FOLDER."
            )
    return [
        (
            spec,
            replace(open_named(spec, precision=precision, fit_texts=fit_texts, cache=cache, seed=seed), name=name),
        )
        for (name, spec), seed in zip(names, seeds, strict=True)
    ]


def judge_models(
    opened: list[tuple[str, Candidate]], tasks: Sequence[Task], *, sentences: Sequence[str] = ()
) -> Verdicts:
    """Judge every model on every task that it can do.

    A task that a model fails (a NaN, constant scores) is recorded with its reason and has no figure. A model is
    forgotten once it is judged, with the vectors it gave.

    Args:
        opened: from :func:`open_models`; emptied.
        tasks: what to judge on.
        sentences: for the heatmap.
    """
    verdicts = Verdicts()
    pairs = [(first, second) for first in sentences for second in sentences]
    count = len(opened)
    while opened:
        spec, candidate = opened.pop(0)
        logger.info(f"model {count - len(opened)} of {count}: {candidate.name}")
        _judge(spec, candidate, tasks, pairs, verdicts)
    return verdicts


def _judge(spec: str, candidate: Candidate, tasks: Sequence[Task], pairs: Sequence[Pair], verdicts: Verdicts) -> None:
    fitting = [task for task in tasks if candidate.encode is not None or not task.embeds]
    for suite in dict.fromkeys(task.suite for task in tasks if task not in fitting):
        verdicts.notes.append(f"{suite}: not run with {candidate.name}, which scores pairs and gives no embeddings.")
    started = time.perf_counter()
    texts = _fill(candidate, _texts(fitting, pairs))
    encoding = time.perf_counter() - started
    seconds: dict[str, float] = {}
    for task in fitting:
        started = time.perf_counter()
        try:
            judgement = task.judge(candidate)
        except (DataError, ModelError) as error:
            verdicts.failures.append(
                Failure(model=candidate.name, task=task.suite, dataset=task.dataset, reason=str(error))
            )
        else:
            verdicts.results += judgement.results
            verdicts.evidence += judgement.evidence
        seconds[task.suite] = seconds.get(task.suite, 0.0) + time.perf_counter() - started
    if pairs and candidate.encode is not None and candidate.name not in verdicts.sentences:
        try:
            verdicts.sentences[candidate.name] = candidate.score(pairs)
        except (DataError, ModelError) as error:
            verdicts.notes.append(f"heatmap: without {candidate.name}. {error}")
    verdicts.models.append(
        Judged(
            name=candidate.name,
            spec=spec,
            protocol=candidate.protocol,
            seed=candidate.seed,
            texts=texts,
            encoding=encoding,
            seconds=seconds,
        )
    )


def _texts(tasks: Sequence[Task], pairs: Sequence[Pair]) -> Iterator[str]:
    for task in tasks:
        yield from task.texts()
    for first, _ in pairs:
        yield first


def _fill(candidate: Candidate, texts: Iterator[str]) -> int:
    """Encode all texts together, if the candidate remembers them; return how many distinct ones there are.

    What cannot be encoded is left for the tasks that need it, which say why.
    """
    fill: Any = getattr(candidate.encode, "fill", None)
    if fill is None:
        return 0
    distinct = list(dict.fromkeys(texts))
    with progress_bar(candidate.name, "text", len(distinct), leave=False) as bar:
        try:
            fill(distinct, on_progress=bar.update)
        except ModelError:
            return 0
    return len(distinct)


def _names(specs: Sequence[str]) -> list[tuple[str, str]]:
    """Return name and specification of each model; a path is named by its last part, if no other is."""
    named: list[tuple[str, str]] = []
    short = [_short(spec) for spec in specs]
    for spec, last in zip(specs, short, strict=True):
        match = _NAMED.fullmatch(spec)
        if match is not None and not Path(spec).exists():
            named.append((match["name"].strip(), match["spec"]))
        else:
            named.append((last if short.count(last) == 1 else spec, spec))
    return named


def _short(spec: str) -> str:
    """Return a specification whose path, if there is such a file or folder, is cut to its last part."""
    match = _PATH.fullmatch(spec)
    if match is None or not Path(match["path"]).expanduser().exists():
        return spec
    return f"{match['kind'] or ''}{Path(match['path']).expanduser().resolve().name}{match['rest']}"


def _seed(spec: str) -> int | None:
    """Return the seed of the training run in the folder that a specification names, if there is one."""
    manifest = Path(spec.partition("+")[0]).expanduser() / "manifest.json"
    if not manifest.is_file():
        return None
    try:
        seed = json.loads(manifest.read_text(encoding="utf-8")).get("settings", {}).get("seed")
    except (OSError, ValueError) as error:
        raise ModelError(f"{manifest} cannot be read: {error}") from error
    return seed if isinstance(seed, int) else None
