"""Data of several kinds in one run: an objective for each on one encoder, their batches after each other.

    samesense train scored.tsv nli.jsonl sentences.txt --output runs/mixed
    samesense train nli.jsonl scored.tsv --mixing in-turn --output runs/mixed

A step is one batch of one kind, with the loss and the gradient that its own method has.

Source: sentence-transformers' training on several data sets with several losses, for batches in proportion and in
    rounds; Reimers and Gurevych 2019, section 4.1, for NLI first and scored pairs after.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from datasets import DatasetDict
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.data_collator import SentenceTransformerDataCollator
from torch import nn
from transformers import TrainerCallback

from samesense.errors import ConfigError
from samesense.execution.ranks import world_size
from samesense.recipes.mixed.data import Mixture, Part
from samesense.recipes.mixed.settings import MixedSettings
from samesense.recipes.run.job import FurtherResults, Job, TrainingInputs
from samesense.training.mixing import Mix, MixedCollator
from samesense.training.texts import LogCut, TrainingTexts


def prepare(model: SentenceTransformer, job: Job[Mixture, MixedSettings]) -> TrainingInputs:
    """Return what a model is trained on: of each kind, what its own method makes of it."""
    if world_size() > 1:
        raise ConfigError(
            f"Data of several kinds are trained on by one process; received {world_size()}, whose batches would be of "
            "different kinds in one step. Start it without torchrun."
        )
    components = job.data.parts
    inputs_by_name = {component.name: _prepared(model, job, component) for component in components}
    texts = {
        component.name: TrainingTexts(model, _length(job, component))
        for component in components
        # Other collators tokenise, and count what is cut, by themselves.
        if not inputs_by_name[component.name].collator
    }
    collators = {
        name: inputs.collator or SentenceTransformerDataCollator(texts[name]) for name, inputs in inputs_by_name.items()
    }
    summary = []
    for component in components:
        lines = (component.described, *inputs_by_name[component.name].summary)
        summary += [f"{component.name}: {line}" for line in lines]
    return TrainingInputs(
        dataset=DatasetDict({name: inputs.dataset for name, inputs in inputs_by_name.items()}),
        loss=lambda: nn.ModuleDict({name: inputs.loss() for name, inputs in inputs_by_name.items()}),
        summary=summary,
        batches=_mix(job, inputs_by_name),
        collator=MixedCollator(collators),
        callbacks=_callbacks(inputs_by_name, texts.values()),
        before_training=_before(inputs_by_name),
        after_training=lambda: _join_results(inputs_by_name),
    )


def _mix(job: Job[Mixture, MixedSettings], inputs_by_name: Mapping[str, TrainingInputs]) -> Mix:
    """Return the order in which the batches of the parts are trained on."""
    settings = job.settings
    return Mix(
        mixing=settings.mixing,
        weights=settings.weights or (),
        steps=settings.max_steps or 0,  # which the data have filled in
        batches={
            name: inputs.batches for name, inputs in inputs_by_name.items() if not isinstance(inputs.batches, Mix)
        },
        sizes={component.name: component.settings.batch_size for component in job.data.parts},
    )


def _length(job: Job[Mixture, MixedSettings], component: Part) -> int | None:
    """Return the longest input of a part: its own, or that of the run."""
    length: int | None = component.settings.max_seq_length or job.settings.max_seq_length
    return length


def _prepared(model: SentenceTransformer, job: Job[Mixture, MixedSettings], component: Part) -> TrainingInputs:
    """Return what the method of a part makes of it."""
    settings = component.settings.model_copy(update={"max_seq_length": _length(job, component)})
    part_job: Any = Job(
        method=component.method, data=component.data, settings=settings, output=job.output, dev=job.dev, begun=job.begun
    )
    inputs: TrainingInputs = component.prepare(model, part_job)
    return inputs


def _callbacks(inputs_by_name: Mapping[str, TrainingInputs], texts: Iterable[TrainingTexts]) -> list[TrainerCallback]:
    """Return the callbacks of the parts, and one that logs which texts were cut short in any of them."""
    callbacks = [callback for inputs in inputs_by_name.values() for callback in inputs.callbacks]
    # One callback for all, as a trainer warns of two of one class.
    cut_loggers = [logger for callback in callbacks if isinstance(callback, LogCut) for logger in callback.all_texts]
    return [*(callback for callback in callbacks if not isinstance(callback, LogCut)), LogCut(*cut_loggers, *texts)]


def _before(inputs_by_name: Mapping[str, TrainingInputs]) -> Callable[[], None] | None:
    """Return what does what the methods do once the folder is taken, if there is anything."""
    actions = [inputs.before_training for inputs in inputs_by_name.values() if inputs.before_training is not None]

    def do() -> None:
        for action in actions:
            action()

    if actions:
        return do
    return None


def _join_results(inputs_by_name: Mapping[str, TrainingInputs]) -> FurtherResults:
    """Return what all methods add to results and manifest."""
    joined = FurtherResults([], {})
    for inputs in inputs_by_name.values():
        if inputs.after_training is not None:
            added = inputs.after_training()
            joined.results.extend(added.results)
            joined.entries.update(added.entries)
    return joined
