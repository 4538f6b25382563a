"""CoSENT, and the losses it is compared with: from scored, binary or NLI pairs to a judged, usable model.

    samesense train pairs.tsv --dev dev.tsv --test test.tsv --output runs/pairs
    samesense train pairs.tsv --loss contrastive --threshold 0.5 --output runs/contrastive

Source: Huang et al. 2024 (TASLP); settings in ``configs/cosent.toml`` and ``configs/cosent-nli.toml``. Every loss is
    trained alike and selected by the Spearman of cosines.
Differs: batches are drawn anew each epoch, where some public codes keep the file's order; poolings ignore padding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import set_seed

from samesense.data import PairData
from samesense.data.targets import Targets, targets
from samesense.encoder.build import build
from samesense.encoder.cosine import cosine_score
from samesense.encoder.encode import as_encode
from samesense.encoder.pooling import describe_pooling
from samesense.encoder.precision import Choice
from samesense.encoder.storage import save
from samesense.encoder.vocabulary import unknown_share
from samesense.errors import ConfigError, MissingExtraError
from samesense.evaluation.pairs import judge_pairs
from samesense.evaluation.sts import evaluate_sts
from samesense.recipes import run_folder
from samesense.recipes.objectives import objective_of
from samesense.recipes.settings import CosentSettings
from samesense.reports import append_results
from samesense.training import manifest
from samesense.training.batches import share_without_comparison
from samesense.training.fit import Judge, Outcome, fit, pick_precision
from samesense.training.ranks import is_main
from samesense.types import Precision, Result

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer

WORTH_SAYING = 0.01
"""Share of batches without a comparison from which on it is said."""

UNKNOWN_WORTH_SAYING = 0.02
"""Share of tokens that a tokenizer does not know from which on it is said."""


@dataclass(frozen=True)
class Trained:
    """What a run leaves: the model folder, how the run ended, and the results, before and after."""

    folder: Path
    outcome: Outcome
    results: list[Result]


def run(
    train: PairData,
    settings: CosentSettings,
    output: Path,
    *,
    dev: PairData | None = None,
    test: PairData | None = None,
    resume: bool = False,
    overwrite: bool = False,
    say: Callable[[str], None] = lambda line: None,
) -> Trained:
    """Train, select on dev, judge on test, and leave ``output/model`` with everything that led to it beside it.

    Args:
        train: labelled pairs.
        settings: see :class:`CosentSettings`.
        output: run folder; holds ``model/``, ``manifest.json``, ``history.jsonl`` and ``results.jsonl``.
        dev: labelled pairs for selection by Spearman; ``None`` takes the last checkpoint.
        test: labelled pairs on which the model is judged before and after.
        resume: continue an interrupted run in ``output``.
        overwrite: replace what is in ``output``.
        say: takes lines for people.

    Under ``torchrun`` every process calls this; the first one writes, speaks and judges on test.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where a run could not end well.
    """
    if settings.encoder != "bi":
        raise ConfigError(
            "This recipe trains bi-encoders; received encoder cross. Take samesense.recipes.cosent_cross."
        )
    prepared = settings.targets(train)
    data = run_folder.identity({"train": train, "dev": dev, "test": test})
    record = manifest.describe("cosent", settings.model_dump(), data) | {"labels": prepared.account}
    before = run_folder.check(output, record, resume=resume, overwrite=overwrite)
    model = build(
        settings.model, pooling=settings.pooling, first=settings.first, max_seq_length=settings.max_seq_length
    )
    dataset = as_dataset(prepared)
    choice = Choice(*before["precision"]) if before else pick_precision(model, dataset, settings)
    record = run_folder.begin(output, record | {"precision": list(choice)}, before)
    say(f"model {settings.model}, pooling {describe_pooling(model)}, {_size(model)}")
    say(f"arithmetic: {choice.precision} ({choice.reason})")
    for line in (*_strange_texts(model, train), *_account(prepared, settings)):
        say(line)
    judged = test if is_main() else None
    results = [] if judged is None else judge_pairs(model, judged, name=f"{settings.model} (before)")
    set_seed(settings.seed)  # an objective may have weights of its own
    outcome = fit(
        model,
        dataset,
        objective_of(model, settings, prepared),
        settings.model_copy(update={"precision": choice.precision}),
        output,
        judge=None if dev is None else dev_judge(dev, choice.precision),
        batches=settings.batches,
        resume=resume,
    )
    if is_main():
        if not outcome.interrupted:
            save(model, output / "model")
            results += [] if judged is None else judge_pairs(model, judged, name=str(output), seed=settings.seed)
            append_results(output / "results.jsonl", results)
        run_folder.end(output, record, outcome)
    return Trained(output / "model", outcome, results)


def _strange_texts(model: SentenceTransformer, train: PairData) -> list[str]:
    """Return a warning if the model's tokenizer does not know much of the first training texts."""
    unknown = unknown_share(model, [*train.sentences1[:500], *train.sentences2[:500]])
    if unknown < UNKNOWN_WORTH_SAYING:
        return []
    return [
        f"warning: {unknown:.0%} of the tokens of the texts are unknown to the model's tokenizer, which reads them all "
        "as one and the same: take a model of their language"
    ]


def _account(prepared: Targets, settings: CosentSettings) -> list[str]:
    """Return what there is to say about labels and batches; nothing for CoSENT where all batches can be compared."""
    lines = [] if settings.loss == "cosent" else [prepared.account]
    if settings.loss != "cosent" and settings.batches != "label-aware":
        return lines
    lacking = share_without_comparison(prepared.columns["label"], settings.batch_size)
    if settings.batches == "label-aware":
        lines.append(f"batches: each with two labels; of random ones {lacking:.1%} would have one only")
    elif lacking >= WORTH_SAYING:
        lines.append(f"batches: {lacking:.1%} have one label only and teach nothing; --batches label-aware has none")
    return lines


def as_dataset(data: PairData | Targets) -> Dataset:
    """Return what the trainer takes: text columns, then ``label`` where there is one; pairs keep their labels."""
    try:
        from datasets import Dataset
    except ImportError as error:
        raise MissingExtraError("datasets", "train") from error
    return Dataset.from_dict((targets(data, "cosent") if isinstance(data, PairData) else data).columns)


def dev_judge(dev: PairData, precision: Precision = "float32") -> Judge:
    """Return the judge that selects by the Spearman of a model's cosines on ``dev``."""

    def judge(model: SentenceTransformer) -> float:
        results = evaluate_sts(
            cosine_score(as_encode(model, precision=precision)),
            dev.pairs(),
            dev.labels,
            dataset=dev.source,
            intervals=False,
            metrics=("spearman",),
        )
        return results[0].value

    return judge


def _size(model: SentenceTransformer) -> str:
    millions = sum(p.numel() for p in model.parameters()) / 1e6
    return f"{millions:.1f} M parameters, at most {model.max_seq_length} tokens"
