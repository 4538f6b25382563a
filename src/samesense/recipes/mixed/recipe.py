"""Data of several kinds in one run: an objective for each on one encoder, their batches after each other.

    samesense train scored.tsv nli.jsonl sentences.txt --output runs/mixed
    samesense train nli.jsonl scored.tsv --mixing in-turn --output runs/mixed

A step is one batch of one kind, with the loss and the gradient that its own method has.

Source: sentence-transformers' training on several data sets with several losses, for batches in proportion and in
    rounds; Reimers and Gurevych 2019, section 4.1, for NLI first and scored pairs after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pkgutil import resolve_name
from typing import Any

from datasets import DatasetDict
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from torch import nn
from transformers import TrainerCallback

from samesense.errors import ConfigError
from samesense.execution.ranks import world_size
from samesense.recipes.job import Job, TrainingInputs
from samesense.recipes.mixed.data import Mixture, Part
from samesense.recipes.mixed.settings import MixedSettings
from samesense.training.mixing import Mix, MixedCollator
from samesense.training.texts import LogCut, TrainingTexts
from samesense.types import Result


def prepare(model: SentenceTransformer, job: Job[Mixture, MixedSettings]) -> TrainingInputs:
    """Return what a model is trained on: of each kind, what its own method makes of it."""
    if world_size() > 1:
        raise ConfigError(
            f"Data of several kinds are trained on by one process; received {world_size()}, whose batches would be of "
            "different kinds in one step. Start it without torchrun."
        )
    parts, settings = job.data.parts, job.settings
    made = {part.name: _prepared(model, job, part) for part in parts}
    texts = {part.name: TrainingTexts(model, _length(job, part)) for part in parts if not made[part.name].collator}
    mix = Mix(
        mixing=settings.mixing,
        weights=settings.weights or (),
        steps=settings.max_steps or 0,  # which the data have filled in
        batches={name: one.batches for name, one in made.items() if not isinstance(one.batches, Mix)},
        sizes={part.name: part.settings.batch_size for part in parts},
    )
    return TrainingInputs(
        dataset=DatasetDict({name: one.dataset for name, one in made.items()}),
        loss=lambda: nn.ModuleDict({name: one.loss() for name, one in made.items()}),
        summary=[f"{part.name}: {line}" for part in parts for line in (part.described, *made[part.name].summary)],
        batches=mix,
        collator=MixedCollator(
            {name: one.collator or SentenceTransformerDataCollator(texts[name]) for name, one in made.items()}
        ),
        callbacks=_callbacks(made, texts.values()),
        before_training=_before(made),
        after_training=lambda: _after(made),
    )


def _length(job: Job[Mixture, MixedSettings], part: Part) -> int | None:
    """Return the longest input of a part: its own, or that of the run."""
    length: int | None = part.settings.max_seq_length or job.settings.max_seq_length
    return length


def _prepared(model: SentenceTransformer, job: Job[Mixture, MixedSettings], part: Part) -> TrainingInputs:
    """Return what the method of a part makes of it."""
    settings = part.settings.model_copy(update={"max_seq_length": _length(job, part)})
    own: Any = Job(
        method=part.method, data=part.data, settings=settings, output=job.output, dev=job.dev, begun=job.begun
    )
    made: TrainingInputs = resolve_name(part.prepare)(model, own)
    return made


def _callbacks(made: Mapping[str, TrainingInputs], texts: Iterable[TrainingTexts]) -> list[TrainerCallback]:
    """Return the callbacks of the parts, and one that logs which texts were cut short in any of them."""
    found = [callback for one in made.values() for callback in one.callbacks]
    cut = [each for callback in found if isinstance(callback, LogCut) for each in callback.each]
    return [*(callback for callback in found if not isinstance(callback, LogCut)), LogCut(*cut, *texts)]


def _before(made: Mapping[str, TrainingInputs]) -> Callable[[], None] | None:
    """Return what does what the methods do once the folder is taken, if there is anything."""
    found = [one.before_training for one in made.values() if one.before_training is not None]

    def do() -> None:
        for each in found:
            each()

    return do if found else None


def _after(made: Mapping[str, TrainingInputs]) -> tuple[list[Result], dict[str, Any]]:
    """Return what the methods add to results and manifest."""
    found = [one.after_training() for one in made.values() if one.after_training]
    return [row for rows, _ in found for row in rows], {key: value for _, more in found for key, value in more.items()}
