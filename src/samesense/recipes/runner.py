"""The frame of every recipe: take the folder, build, judge, train, keep, judge again, and leave a record of it all."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack

from torch import nn
from transformers import TrainerCallback, set_seed

from samesense.data import PairData
from samesense.data.examples import Examples
from samesense.encoder.precision import Choice
from samesense.encoder.storage import save
from samesense.encoder.vocabulary import unknown_share
from samesense.evaluation.sts import evaluate_sts
from samesense.execution.ranks import is_main
from samesense.recipes import run_folder
from samesense.recipes.model_adapters import BiEncoder, Kind
from samesense.recipes.settings import EncoderSettings
from samesense.reports import append_results
from samesense.training import manifest
from samesense.training.batches import Batches
from samesense.training.fit import TrainOutput
from samesense.types import Precision, Result

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer

logger = logging.getLogger(__name__)

Model = TypeVar("Model", bound=Any)

UNKNOWN_WORTH_SAYING = 0.02
"""Share of tokens that a tokenizer does not know from which on it is said."""


class How(TypedDict, total=False):
    """How a run goes, whatever its method.

    Attributes:
        dev: labelled pairs for selection by Spearman; without them the last state is kept.
        test: labelled pairs on which the model is judged before and after.
        resume: continue an interrupted run in the output folder.
        overwrite: replace what is in it.
    """

    dev: PairData | None
    test: PairData | None
    resume: bool
    overwrite: bool


@dataclass(frozen=True)
class Trained:
    """What a run leaves: the model folder, how the run ended, and the results, before and after."""

    folder: Path
    outcome: TrainOutput
    results: list[Result]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What a model is trained on, and how.

    Attributes:
        dataset: text columns, then ``label`` where the objective takes one.
        objective: makes the objective; called once the seed is set.
        account: lines for people and for the manifest: what was read, formed and left out.
        batches: how examples are put into batches.
        collator: puts examples into a batch, where the trainer's own does not do.
        callbacks: of the trainer.
        work: what takes long, and is done once the folder is taken, so that an interrupted run can be resumed.
        after: looks at the saved model; returns further results, and what the manifest shall say besides.
    """

    dataset: Dataset
    objective: Callable[[], nn.Module]
    account: Sequence[str] = ()
    batches: Batches = "random"
    collator: Callable[..., Any] | None = None
    callbacks: Sequence[TrainerCallback] = ()
    work: Callable[[], None] | None = None
    after: Callable[[], tuple[list[Result], dict[str, Any]]] | None = None


def run(  # noqa: PLR0913 - what every recipe is given
    kind: Kind[Model],
    method: str,
    settings: EncoderSettings,
    output: Path,
    train: Examples,
    prepare: Callable[[Model], Prepared],
    *,
    dev: PairData | None = None,
    test: PairData | None = None,
    resume: bool = False,
    overwrite: bool = False,
) -> Trained:
    """Train, select on dev, judge on test, and leave ``output/model`` with everything that led to it beside it.

    Args:
        kind: of the model.
        method: name of the recipe in the manifest.
        settings: of the recipe.
        output: run folder; holds ``model/``, ``manifest.json``, ``history.jsonl`` and ``results.jsonl``.
        train: what is trained on; only its fingerprint is taken here.
        prepare: gives, for the built model, what it is trained on; raises where the run could not end well.
        dev: labelled pairs for selection by Spearman; ``None`` takes the last checkpoint.
        test: labelled pairs on which the model is judged before and after.
        resume: continue an interrupted run in ``output``.
        overwrite: replace what is in ``output``.

    Under ``torchrun`` every process calls this; the first one writes, speaks and judges on test.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where a run could not end well.
    """
    data = run_folder.identity({"train": train, "dev": dev, "test": test})
    record = manifest.describe(method, settings.model_dump(), data)
    before = run_folder.check(output, record, resume=resume, overwrite=overwrite)
    model = kind.build(settings)
    prepared = prepare(model)
    choice = Choice(*before["precision"]) if before else kind.pick_precision(model, prepared.dataset, settings)
    record |= {"account": list(prepared.account), "precision": list(choice)}
    with run_folder.held(output):
        run_folder.check(output, record, resume=resume, overwrite=overwrite)  # another run may have ended since
        record = run_folder.begin(output, record, before)
        logger.info(f"model {settings.model}, {kind.describe(model, settings)}")
        logger.info(f"arithmetic: {choice.precision} ({choice.reason})")
        _warn_of_unknown_tokens(model, prepared.dataset)
        for line in prepared.account:
            logger.info(line)
        judged = test if is_main() else None
        results = [] if judged is None else kind.judge_before(model, settings, judged)
        outcome = run_folder.trained(output, before)
        if outcome is None:
            outcome = _train(kind, settings, output, model, prepared, choice, dev, resume)
            if is_main() and not outcome.interrupted:
                run_folder.keep(output, record, outcome, partial(save, model))
        if is_main():
            found: dict[str, Any] = {}
            if not outcome.interrupted:
                results += [] if judged is None else kind.judge_after(settings, judged, output)
                further, found = ([], {}) if prepared.after is None else prepared.after()
                results += further
                append_results(output / run_folder.RESULTS, results)
            run_folder.end(output, record, outcome, **found)
        return Trained(output / run_folder.MODEL, outcome, results)


def _train(
    kind: Kind[Model],
    settings: EncoderSettings,
    output: Path,
    model: Model,
    prepared: Prepared,
    choice: Choice,
    dev: PairData | None,
    resume: bool,
) -> TrainOutput:
    """Train in place, or go on with it."""
    if prepared.work is not None:
        prepared.work()
    set_seed(settings.seed)  # an objective may have weights of its own
    return kind.fit(
        model,
        prepared.dataset,
        prepared.objective(),
        settings.model_copy(update={"precision": choice.precision}),
        output,
        judge=None if dev is None else dev_judge(kind, dev, choice.precision),
        batches=prepared.batches,
        collator=prepared.collator,
        resume=resume,
        callbacks=list(prepared.callbacks),
    )


def run_bi(
    method: str,
    settings: EncoderSettings,
    output: Path,
    train: Examples,
    prepare: Callable[[SentenceTransformer], Prepared],
    **how: Unpack[How],
) -> Trained:
    """Run a recipe that trains a bi-encoder; the arguments are those of :func:`run`."""
    return run(BiEncoder(), method, settings, output, train, prepare, **how)


def dev_judge(kind: Kind[Model], dev: PairData, precision: Precision = "float32") -> Callable[[Model], float]:
    """Return the judge that selects by the Spearman of a model's scores on ``dev``."""

    def judge(model: Model) -> float:
        score = kind.score(model, precision)
        found = evaluate_sts(score, dev.pairs(), dev.labels, dataset=dev.source, intervals=False, metrics=("spearman",))
        return found[0].value

    return judge


def _warn_of_unknown_tokens(model: Any, dataset: Dataset) -> None:
    """Warn if the model's tokenizer does not know much of the first training texts."""
    columns = [values for values in dataset[:500].values() if values and isinstance(values[0], str)]
    unknown = unknown_share(model, [text for column in columns for text in column])
    if unknown >= UNKNOWN_WORTH_SAYING:
        logger.warning(
            f"{unknown:.0%} of the tokens of the texts are unknown to the model's tokenizer, which reads them all as "
            "one and the same: take a model of their language"
        )
