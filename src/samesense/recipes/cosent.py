"""CoSENT: from scored, binary or NLI pairs to a judged, usable model.

    samesense train pairs.tsv --dev dev.tsv --test test.tsv --output runs/pairs

Source: Huang et al. 2024 (TASLP); settings in ``configs/cosent.toml`` and ``configs/cosent-nli.toml``.
Differs: batches are drawn anew each epoch, where some public codes keep the file's order; poolings ignore padding.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from samesense.data import PairData
from samesense.encoder.build import build
from samesense.encoder.cosine import cosine_score
from samesense.encoder.encode import as_encode
from samesense.encoder.pooling import describe_pooling
from samesense.encoder.precision import Choice
from samesense.encoder.storage import check_free, save
from samesense.errors import MissingExtraError, OutputError
from samesense.evaluation.pairs import judge_pairs
from samesense.evaluation.sts import evaluate_sts
from samesense.recipes.settings import CosentSettings
from samesense.reports import append_results
from samesense.training import manifest
from samesense.training.fit import Judge, Outcome, fit, pick_precision
from samesense.training.objective import CoSENT
from samesense.types import Result

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer


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

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where a run could not end well.
    """
    parts = {"train": train, "dev": dev, "test": test}
    identity = {name: {"source": d.source, "sha256": d.sha256, "rows": len(d)} for name, d in parts.items() if d}
    record = manifest.describe("cosent", settings.model_dump(), identity)
    if resume:
        if (output / "model").exists():
            raise OutputError(f"The run in {output} is finished: its model is there. Pass --overwrite to train anew.")
        manifest.check_same_run(output, record)
    else:
        check_free(output, overwrite=overwrite)
    model = build(
        settings.model, pooling=settings.pooling, first=settings.first, max_seq_length=settings.max_seq_length
    )
    if not resume:
        _clear(output)
    output.mkdir(parents=True, exist_ok=True)
    dataset = as_dataset(train)
    choice = Choice(*manifest.read(output)["precision"]) if resume else pick_precision(model, dataset, settings)
    record["precision"] = list(choice)  # a resumed run keeps the arithmetic that it was begun in
    manifest.write(output, record)
    say(f"model {settings.model}, pooling {describe_pooling(model)}, {_millions(model)} M parameters")
    say(f"arithmetic: {choice.precision} ({choice.reason})")
    results = [] if test is None else judge_pairs(model, test, name=f"{settings.model} (before)")
    outcome = fit(
        model,
        dataset,
        CoSENT(model, temperature=settings.temperature, margin=settings.margin, token_budget=settings.token_budget),
        settings.model_copy(update={"precision": choice.precision}),
        output,
        judge=None if dev is None else dev_judge(dev),
        resume=resume,
    )
    record["outcome"] = asdict(outcome)
    record["status"] = "interrupted" if outcome.interrupted else "finished"
    if not outcome.interrupted:
        save(model, output / "model")
        results += [] if test is None else judge_pairs(model, test, name=str(output), seed=settings.seed)
        append_results(output / "results.jsonl", results)
    manifest.write(output, record)
    return Trained(output / "model", outcome, results)


def as_dataset(data: PairData) -> Dataset:
    """Return ``data`` as the dataset that the trainer takes: two text columns, then ``label``."""
    try:
        from datasets import Dataset
    except ImportError as error:
        raise MissingExtraError("datasets", "train") from error
    return Dataset.from_dict({"sentence1": data.sentences1, "sentence2": data.sentences2, "label": data.labels})


def dev_judge(dev: PairData) -> Judge:
    """Return the dev Spearman of a model's cosines, computed in the precision that training would pick."""

    def judge(model: SentenceTransformer) -> float:
        results = evaluate_sts(
            cosine_score(as_encode(model)),
            dev.pairs(),
            dev.labels,
            dataset=dev.source,
            intervals=False,
            metrics=("spearman",),
        )
        return results[0].value

    return judge


def _clear(output: Path) -> None:
    """Remove what an earlier run left, and nothing else."""
    for folder in ("model", "checkpoints"):
        shutil.rmtree(output / folder, ignore_errors=True)
    for file in (manifest.FILE, "history.jsonl", "results.jsonl"):
        (output / file).unlink(missing_ok=True)


def _millions(model: SentenceTransformer) -> str:
    return f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f}"
