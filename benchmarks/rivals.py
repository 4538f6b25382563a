"""The recipes that people copy, for ``without_a_flag.py``: one process trains one model, as a script of theirs would.

    python benchmarks/rivals.py JOB.json

Each recipe is that of the library's documentation for the kind of data: loss, batch size, epochs and warm-up of its
example, and the trainer's bare defaults beside it. Those of sentence-transformers use the trainer arguments that are
fastest on this processor; SetFit has none for a processor without a GPU.

Source: examples of sentence-transformers 6.2 (training_stsbenchmark.py, training_nli.py, training_nli_v2.py, the page
    on MultipleNegativesRankingLoss, training_online_contrastive_loss.py, train_simcse_from_file.py); quickstart of
    SetFit 1.2.
"""

from __future__ import annotations

import json
import pickle
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from supervision import nli_triplets

Rows = list[list[str]]

NLI_CLASSES = {"contradiction": 0, "entailment": 1, "neutral": 2}


@dataclass(frozen=True)
class Recipe:
    """How sentence-transformers trains on one kind of data."""

    loss: str  # class of the loss
    columns: str  # how rows become columns
    arguments: dict[str, Any]  # of the trainer


EXAMPLE = {"num_train_epochs": 4, "per_device_train_batch_size": 16, "warmup_ratio": 0.1}
NO_DUPLICATES = {"batch_sampler": "no_duplicates"}
LARGE = {"num_train_epochs": 1, "per_device_train_batch_size": 64, "warmup_ratio": 0.1}
BARE: dict[str, Any] = {}

RECIPES = {
    "scored": {
        "CosineSimilarityLoss": Recipe("CosineSimilarityLoss", "scores", EXAMPLE),
        "CoSENTLoss": Recipe("CoSENTLoss", "scores", EXAMPLE),
        "CoSENTLoss, bare trainer": Recipe("CoSENTLoss", "scores", BARE),
    },
    "binary": {
        "OnlineContrastiveLoss": Recipe("OnlineContrastiveLoss", "labels", {**LARGE, **NO_DUPLICATES}),
        "CoSENTLoss": Recipe("CoSENTLoss", "scores", EXAMPLE),
        "CoSENTLoss, bare trainer": Recipe("CoSENTLoss", "scores", BARE),
    },
    "nli": {
        "MultipleNegativesRankingLoss": Recipe("MultipleNegativesRankingLoss", "formed", {**LARGE, **NO_DUPLICATES}),
        "SoftmaxLoss": Recipe("SoftmaxLoss", "classes", {**EXAMPLE, "num_train_epochs": 1}),
        "MultipleNegativesRankingLoss, bare trainer": Recipe("MultipleNegativesRankingLoss", "formed", BARE),
    },
    "triplets": {
        "MultipleNegativesRankingLoss": Recipe("MultipleNegativesRankingLoss", "triplets", {**LARGE, **NO_DUPLICATES}),
        "TripletLoss": Recipe("TripletLoss", "triplets", EXAMPLE),
    },
    "positives": {
        "MultipleNegativesRankingLoss": Recipe("MultipleNegativesRankingLoss", "pairs", {**LARGE, **NO_DUPLICATES}),
        "MultipleNegativesRankingLoss, bare trainer": Recipe("MultipleNegativesRankingLoss", "pairs", BARE),
    },
    "classes": {},  # SetFit, see train_setfit
    "sentences": {
        "SimCSE": Recipe("MultipleNegativesRankingLoss", "twice", LARGE),
        "SimCSE, bare trainer": Recipe("MultipleNegativesRankingLoss", "twice", BARE),
    },
}
"""Recipes by kind of data and name. Large batches are of 64, where the examples have 64 to 128."""

SETFIT = "SetFit"


def names_of(kind: str) -> list[str]:
    """Return the names of the rivals that train on one kind of data."""
    return [*RECIPES[kind], *([SETFIT] if kind == "classes" else [])]


def columns_of(form: str, rows: Rows) -> dict[str, list[Any]]:
    """Return the columns of the trainer's data set."""
    if form == "twice":
        return {"anchor": [row[0] for row in rows], "positive": [row[0] for row in rows]}
    if form == "formed":
        triplets = nli_triplets(rows)
        entailed = [row for row in rows if row[2] == "entailment"]
        if 2 * len(triplets) >= len(entailed):
            return _triplet_columns(triplets)
        rows = entailed  # premises hardly repeat: a user has pairs, not a tenth of them as triplets
    if form == "triplets":
        return _triplet_columns(rows)
    columns: dict[str, list[Any]] = {"first": [row[0] for row in rows], "second": [row[1] for row in rows]}
    if form == "scores":
        values = [float(row[2]) for row in rows]
        low, high = min(values), max(values)
        columns["score"] = [(value - low) / (high - low) for value in values]
    elif form == "labels":
        columns["label"] = [int(float(row[2])) for row in rows]
    elif form == "classes":
        columns["label"] = [NLI_CLASSES[row[2]] for row in rows]
    return columns


def _triplet_columns(triplets: Sequence[Sequence[str]]) -> dict[str, list[Any]]:
    names = ("anchor", "positive", "negative")
    return {name: [triplet[index] for triplet in triplets] for index, name in enumerate(names)}


def train_sentence_transformer(job: dict[str, Any], recipe: Recipe) -> None:
    """Train by sentence-transformers' trainer, and save the last state."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer import losses

    model = SentenceTransformer(job["start"], device="cpu")
    loss_class = getattr(losses, recipe.loss)
    if recipe.loss == "SoftmaxLoss":
        loss = loss_class(model, model.get_embedding_dimension(), num_labels=3)
    else:
        loss = loss_class(model)
    arguments = {**recipe.arguments, **job["faster"]}
    if "warmup_ratio" in arguments:  # its new name, a share where it is below 1
        arguments["warmup_steps"] = arguments.pop("warmup_ratio")
    settings = SentenceTransformerTrainingArguments(
        job["output"] + "/trainer",
        seed=job["seed"],
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        **arguments,
    )
    dataset = Dataset.from_dict(columns_of(recipe.columns, job["rows"]))
    SentenceTransformerTrainer(model=model, args=settings, train_dataset=dataset, loss=loss).train()
    model.save_pretrained(job["output"] + "/model")


def train_setfit(job: dict[str, Any]) -> None:
    """Train by SetFit with its quickstart's arguments, and save its body and its head."""
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    model = SetFitModel.from_pretrained(job["start"], device="cpu")
    dataset = Dataset.from_dict({"text": [row[0] for row in job["rows"]], "label": [row[1] for row in job["rows"]]})
    settings = TrainingArguments(
        job["output"] + "/trainer", batch_size=32, num_epochs=1, seed=job["seed"], save_strategy="no", report_to="none"
    )
    Trainer(model=model, args=settings, train_dataset=dataset).train()
    model.model_body.save_pretrained(job["output"] + "/model")
    Path(job["output"], "head.pickle").write_bytes(pickle.dumps(model.model_head))


def main() -> None:
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    if job["recipe"] == SETFIT:
        train_setfit(job)
    else:
        train_sentence_transformer(job, RECIPES[job["kind"]][job["recipe"]])


if __name__ == "__main__":
    main()
