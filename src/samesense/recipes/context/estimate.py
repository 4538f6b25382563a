"""How long the way from documents to a model takes: all of it is gone once with little, and each part multiplied."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from samesense.context.corpus.corpus import Corpus
from samesense.context.generator.base import KINDS
from samesense.execution.progress import progress_bar, stage
from samesense.execution.shards.executors import usual_workers
from samesense.execution.threads import torch_threads
from samesense.execution.timing import time_summary
from samesense.recipes.context.documents import Documents
from samesense.recipes.context.settings import ContextSettings, surrogate_settings
from samesense.recipes.harvest.recipe import harvest
from samesense.recipes.harvest.settings import HarvestSettings
from samesense.recipes.harvest.vectors import SHARD
from samesense.recipes.origin import recipe as origin_recipe
from samesense.recipes.origin.settings import OriginSettings
from samesense.recipes.run.estimate import time_step
from samesense.recipes.run.job import Job
from samesense.recipes.surrogate.reading import read_harvest
from samesense.recipes.surrogate.recipe import prepare
from samesense.scratch import ScratchFolder
from samesense.training import manifest

logger = logging.getLogger(__name__)

WORDS = 20_000
"""Words of the documents by which the time is estimated."""

REFERENCE = 50
"""Sentences that are read to whiten."""

SENTENCES = 200
"""Sentences that are read to harvest."""

STEPS = 8
"""Steps of a generator."""

WINDOWS = 50
"""Windows that are held out."""


def estimate(job: Job[Documents, ContextSettings]) -> list[str]:
    """Return, in words, the steps and an estimate of the time; in a larger corpus, contexts take a little longer."""
    settings = job.settings
    origin = job.settings.origin_settings()
    whole = _sentences(job.data.sources, origin)
    logger.info(f"measuring with {WORDS:,} words of the documents, in a folder that is thrown away")
    with ScratchFolder() as scratch, stage("measuring"):
        folder = Path(scratch)
        little = origin.model_copy(update=_less(origin))
        by_words = origin.contexts == "words"
        with torch_threads(1 if by_words else None):  # as the processes that read
            if not origin_recipe.run(list(job.data.sources), little, folder / "origin"):
                # The recipe returns False after Ctrl-C, which must end the estimate as well.
                raise KeyboardInterrupt
        corpus = Corpus(folder / "origin" / "corpus", origin.shape())
        scale = whole / len(corpus)
        stages = manifest.read(folder / "origin")["stages"]
        times = {name: _times(name, origin, round(len(corpus.windows) * scale), scale) for name in stages}
        seconds = {name: stages[name]["seconds"] * times[name] for name in stages}
        mixture = settings.harvest_settings()
        few = mixture.model_copy(update=_fewer(mixture, by_words))
        # Unchecked: so few scores may all be alike, for which a whole harvest would be refused.
        harvest_run = harvest(folder / "origin", folder / "harvest", few, check=False)
        each = harvest_run.cost["seconds"] / max(1.0, harvest_run.cost["rows"])
        seconds["harvest"] = each * mixture.pairs / (mixture.workers or 1)
        if by_words:  # sentences take the time, and pairs none
            sentences = min(mixture.sentences, whole)
            each = stages["reference"]["seconds"] / little.reference
            seconds["harvest"] += each * sentences / _workers(mixture, sentences)
        surrogate = surrogate_settings(settings, held_out_share=0.2)
        data = read_harvest([str(folder / "harvest")], surrogate)
        run = Job(method="surrogate", data=data, settings=surrogate, output=folder / "surrogate")
        step, saving = time_step(run, prepare)
    # One share selects, and a second one tests.
    examples = settings.most_pairs or round(mixture.pairs * (1 - 2 * settings.held_out_share))
    if data.by_sentences:
        # A pair is held out if both of its sentences are, hence the root.
        examples = round(min(mixture.sentences, whole) * (1 - math.sqrt(2 * settings.held_out_share)))
    steps = surrogate_settings(settings).for_data(data).steps(examples)
    seconds["surrogate"] = step * steps + saving * (1 + steps // settings.steps_between_evaluations(examples))
    return [
        f"documents: {whole:,} sentences; harvest: {mixture.pairs:,} pairs; surrogate: {steps:,} steps",
        f"estimate of the {time_summary(seconds)}; by {WORDS:,} words of the documents on this machine",
    ]


def _sentences(sources: Sequence[str], origin: OriginSettings) -> int:
    with progress_bar("count", "document") as bar:
        count = 0
        for document in origin_recipe.learnt_from(sources, origin):
            count += sum(map(len, document))
            bar.update()
    return count


def _less(origin: OriginSettings) -> dict[str, Any]:
    """Return the settings of the Origin that make it little."""
    return {
        "corpus_words": min(WORDS, origin.corpus_words or WORDS),
        "reference": min(REFERENCE, origin.reference),
        "texts": (),
        "discriminator_epochs": 1,
        "generator_max_steps": STEPS,
        "models": "one",
        "held_out_windows": min(WINDOWS, origin.held_out_windows),
        "workers": None,
        "executor": "embedded",
    }


def _fewer(mixture: HarvestSettings, by_words: bool) -> dict[str, Any]:
    """Return the settings of the harvest that make it little: one unit of pairs."""
    sentences = min(SENTENCES, mixture.sentences)
    unit = min(sentences, mixture.unit)
    pairs = unit * (unit - 1) // 2
    few = {"pairs": pairs, "shard_size": pairs, "workers": 1, "executor": "embedded"}
    if not by_words:
        return few
    return {**few, "sentences": sentences}


def _times(name: str, origin: OriginSettings, windows: int, scale: float) -> float:
    """Return by how much a stage takes longer with all documents and settings."""
    if name == "generator":
        targets = math.ceil(windows * len(KINDS) / origin.generator_batch_size)
        return (origin.generator_max_steps or targets * origin.generator_epochs) / STEPS
    if name == "discriminator":
        return scale * origin.discriminator_epochs
    if name == "reference":
        return origin.reference / min(REFERENCE, origin.reference) / _workers(origin, origin.reference)
    if name == "corpus":
        return scale
    return 1.0


def _workers(settings: OriginSettings | HarvestSettings, sentences: int) -> int:
    """Return the processes that read this number of sentences."""
    return settings.workers or usual_workers(sentences // SHARD, "cpu")
