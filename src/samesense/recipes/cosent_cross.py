"""CoSENT for cross-encoders: from scored, binary or NLI pairs to a judged model that reads both texts together.

    samesense train pairs.tsv --encoder cross --dev dev.tsv --test test.tsv --output runs/cross
    samesense train pairs.tsv --encoder cross --loss cross-entropy --output runs/cross-entropy

Source: Huang et al. 2024 (TASLP), Eq. 11 and section V-E; settings in ``configs/cosent-cross.toml``.
Differs: λ is 1 unless a temperature is given; texts keep the segment ids of the model's tokenizer, where the blog's
    code sets all to 0; selection is by Spearman, where the blog's code selects by accuracy.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sentence_transformers import CrossEncoder

from samesense.data import PairData
from samesense.data.scale import number_text
from samesense.data.targets import Targets
from samesense.encoder.build_cross import build_cross, has_one_logit
from samesense.encoder.candidates import open_candidate
from samesense.encoder.cross import as_logits
from samesense.encoder.precision import Choice
from samesense.encoder.storage import save
from samesense.errors import ConfigError, DataError
from samesense.evaluation.pairs import judge_candidate
from samesense.evaluation.sts import evaluate_sts
from samesense.recipes import run_folder
from samesense.recipes.cosent import Trained, as_dataset
from samesense.recipes.settings import CosentSettings
from samesense.reports import append_results
from samesense.training import manifest
from samesense.training.cross import Judge, fit_cross, pick_cross_precision
from samesense.training.cross_objective import CrossCoSENT, CrossEntropy, PairObjective
from samesense.training.ranks import is_main
from samesense.types import Precision, Result


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
        settings: with ``encoder`` ``"cross"`` and ``loss`` ``"cosent"`` or ``"cross-entropy"``.
        output: run folder; holds ``model/``, ``manifest.json``, ``history.jsonl`` and ``results.jsonl``.
        dev: labelled pairs for selection by Spearman; ``None`` takes the last checkpoint.
        test: labelled pairs on which the model is judged after training; before it only where the start point is a
            cross-encoder of one logit, since a new head says nothing.
        resume: continue an interrupted run in ``output``.
        overwrite: replace what is in ``output``.
        say: takes lines for people.

    Under ``torchrun`` every process calls this; the first one writes, speaks and judges on test.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where a run could not end well.
    """
    prepared = prepare(train, settings)
    data = run_folder.identity({"train": train, "dev": dev, "test": test})
    record = manifest.describe("cosent-cross", settings.model_dump(), data) | {"labels": prepared.account}
    before = run_folder.check(output, record, resume=resume, overwrite=overwrite)
    model = build_cross(settings.model, max_seq_length=settings.max_seq_length, seed=settings.seed)
    objective = objective_of(model, settings)
    dataset = as_dataset(prepared)
    choice = Choice(*before["precision"]) if before else pick_cross_precision(model, dataset, settings)
    record = run_folder.begin(output, record | {"precision": list(choice)}, before)
    say(f"model {settings.model}, {_described(model, settings.model)}")
    say(f"loss: {prepared.account}{f', temperature {settings.temperature:g}' if settings.loss == 'cosent' else ''}")
    say(f"arithmetic: {choice.precision} ({choice.reason})")
    judged = test if is_main() else None
    results = _judged(settings.model, judged, f"{settings.model} (before)") if has_one_logit(settings.model) else []
    outcome = fit_cross(
        model,
        dataset,
        objective,
        settings.model_copy(update={"precision": choice.precision}),
        output,
        judge=None if dev is None else dev_judge(dev, choice.precision),
        batches=settings.batches,
        resume=resume,
    )
    if is_main():
        if not outcome.interrupted:
            save(model, output / "model")
            results += _judged(str(output), judged, str(output), settings.seed)
            append_results(output / "results.jsonl", results)
        run_folder.end(output, record, outcome)
    return Trained(output / "model", outcome, results)


def prepare(train: PairData, settings: CosentSettings) -> Targets:
    """Return what the loss is trained on: labels as they are for CoSENT, on 0 to 1 for cross-entropy.

    Raises:
        ConfigError: if the settings are not those of a cross-encoder.
        DataError: if all labels are equal, or cross-entropy needs a scale that is not known.
    """
    if settings.encoder != "cross":
        raise ConfigError("This recipe trains cross-encoders; received encoder bi. Take samesense.recipes.cosent.")
    if settings.loss == "cosent" and len(set(train.labels)) < 2:
        raise DataError(
            f"CoSENT compares pairs with different labels; all {len(train)} labels of {train.source} are "
            f"{number_text(train.labels[0])}. Give pairs of two labels at least."
        )
    return settings.targets(train)


def objective_of(model: CrossEncoder, settings: CosentSettings) -> PairObjective:
    """Return the objective that ``settings.loss`` names."""
    budget = settings.token_budget
    if settings.loss == "cosent":
        return CrossCoSENT(model, temperature=settings.temperature, margin=settings.margin, token_budget=budget)
    return CrossEntropy(model, token_budget=budget)


def dev_judge(dev: PairData, precision: Precision = "float32") -> Judge:
    """Return the judge that selects by the Spearman of a model's logits on ``dev``."""

    def judge(model: CrossEncoder) -> float:
        score = as_logits(model, precision=precision)
        results = evaluate_sts(
            score, dev.pairs(), dev.labels, dataset=dev.source, intervals=False, metrics=("spearman",)
        )
        return results[0].value

    return judge


def _judged(source: str, test: PairData | None, name: str, seed: int | None = None) -> list[Result]:
    return [] if test is None else judge_candidate(open_candidate(source, seed=seed), test, name=name)


def _described(model: CrossEncoder, start: str) -> str:
    millions = sum(p.numel() for p in model.parameters()) / 1e6
    head = "its own" if has_one_logit(start) else "a new"
    return f"cross-encoder with {head} head, {millions:.1f} M parameters, at most {model.max_seq_length} tokens a pair"
