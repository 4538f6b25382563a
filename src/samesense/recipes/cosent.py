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
from typing import TYPE_CHECKING, Any

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
from samesense.training.ranks import is_main
from samesense.types import Precision, Result

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

    Under ``torchrun`` every process calls this; the first one writes, speaks and judges on test.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where a run could not end well.
    """
    parts = {"train": train, "dev": dev, "test": test}
    identity = {name: {"source": d.source, "sha256": d.sha256, "rows": len(d)} for name, d in parts.items() if d}
    record = manifest.describe("cosent", settings.model_dump(), identity)
    before = _check(output, record, resume=resume, overwrite=overwrite)
    model = build(
        settings.model, pooling=settings.pooling, first=settings.first, max_seq_length=settings.max_seq_length
    )
    dataset = as_dataset(train)
    choice = Choice(*before["precision"]) if before else pick_precision(model, dataset, settings)
    record["precision"] = list(choice)  # a resumed run keeps the arithmetic that it was begun in
    if before:
        record = before | {"status": "running", "resumed": [*before.get("resumed", []), record["started"]]}
    if is_main():
        _begin(output, record, resume=resume)
    say(f"model {settings.model}, pooling {describe_pooling(model)}, {_size(model)}")
    say(f"arithmetic: {choice.precision} ({choice.reason})")
    judged = test if is_main() else None
    results = [] if judged is None else judge_pairs(model, judged, name=f"{settings.model} (before)")
    outcome = fit(
        model,
        dataset,
        CoSENT(model, temperature=settings.temperature, margin=settings.margin, token_budget=settings.token_budget),
        settings.model_copy(update={"precision": choice.precision}),
        output,
        judge=None if dev is None else dev_judge(dev, choice.precision),
        resume=resume,
    )
    if is_main():
        if not outcome.interrupted:
            save(model, output / "model")
            results += [] if judged is None else judge_pairs(model, judged, name=str(output), seed=settings.seed)
            append_results(output / "results.jsonl", results)
        status = "interrupted" if outcome.interrupted else "finished"
        manifest.write(output, record | {"outcome": asdict(outcome), "status": status})
    return Trained(output / "model", outcome, results)


def _check(output: Path, record: dict[str, Any], *, resume: bool, overwrite: bool) -> dict[str, Any]:
    """Raise where this run may not write to ``output``; returns the manifest of the run that is resumed, or nothing."""
    if not resume:
        if is_main():
            check_free(output, overwrite=overwrite)
        return {}
    if (output / "model").exists():
        raise OutputError(f"The run in {output} is finished: its model is there. Pass --overwrite to train anew.")
    return manifest.check_same_run(output, record)


def _begin(output: Path, record: dict[str, Any], *, resume: bool) -> None:
    """Take the folder: remove what an earlier run left, and nothing else, and write the manifest."""
    if not resume:
        for folder in ("model", "checkpoints"):
            shutil.rmtree(output / folder, ignore_errors=True)
        for file in (manifest.FILE, "history.jsonl", "results.jsonl"):
            (output / file).unlink(missing_ok=True)
    output.mkdir(parents=True, exist_ok=True)
    manifest.write(output, record)


def as_dataset(data: PairData) -> Dataset:
    """Return ``data`` as the dataset that the trainer takes: two text columns, then ``label``."""
    try:
        from datasets import Dataset
    except ImportError as error:
        raise MissingExtraError("datasets", "train") from error
    return Dataset.from_dict({"sentence1": data.sentences1, "sentence2": data.sentences2, "label": data.labels})


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
