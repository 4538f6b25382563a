"""The stages of an Origin by next words: read reference sentences, and fit the parts of a vector on them.

Reading is what takes long. Its shards are resumed, made exactly once, and shared by processes or a Ray cluster; see
:mod:`samesense.execution.shards.job`.
"""

from __future__ import annotations

import io
import logging
import time
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from samesense.context.corpus.corpus import Corpus
from samesense.context.generator.language_models import open_language_model
from samesense.context.origin.origin import FILE
from samesense.context.origin.parts import OWN, STATE, WORDS, Parts, WhitenedPart, WordPart
from samesense.context.origin.reader import Reader, Readings
from samesense.context.origin.scheme import reference_sentences
from samesense.context.origin.word_origin import PARTS
from samesense.data.sentences import unlabelled_texts
from samesense.encoder.forward.precision import inference_precision
from samesense.encoder.maps.whitening import Whitening
from samesense.errors import ConfigError, ModelError
from samesense.execution.shards.executors import usual_workers
from samesense.execution.shards.job import Shard, ShardedJob, sharded_job
from samesense.execution.threads import torch_threads
from samesense.execution.unread import counted, note
from samesense.files import read_json, write_json
from samesense.hashes import rows_hash
from samesense.inference.names import settled_name
from samesense.recipes.origin.settings import LANGUAGE_MODEL, Arithmetic, OriginSettings
from samesense.recipes.stages import Interrupted, Stages
from samesense.types import Embeddings

logger = logging.getLogger(__name__)

REFERENCE = "reference"
"""Folder of what was read of the reference sentences."""

TEXTS = "reference.json"
"""File of the reference sentences."""

OUTPUTS = {"reference": [REFERENCE, TEXTS, FILE], "parts": [PARTS, FILE]}
"""What each stage makes."""

SHARD = 50
"""Sentences of a shard, and what a kill may cost a worker."""

_FITTING = {"weight_own", "weight_state", "weight_words", "kept_words", "dimensions", "seed"}
"""Settings that decide the parts of a vector, once the sentences are read."""

SUFFIX = ".npz"
"""Of the file of a shard."""

FEWEST = 50
"""Sentences below which whitening says nothing."""

MOST_TOKENS_PER_CHARACTER = 0.6
"""English takes .2 of SmolLM2's tokens a character, German .4; a script that a tokenizer does not know takes over 1."""


class WordMaker:
    """Reads what is not read yet.

    Raises:
        ModelError: if the language model cannot be opened, or is not causal; now, not when the corpus is there.
    """

    def __init__(self, settings: OriginSettings, device: str) -> None:
        self._settings = settings
        self._name = settled_name(settings.language_model or LANGUAGE_MODEL)
        self._precision = inference_precision(settings.score_precision, torch.device(device))
        layers = settings.own_layer, settings.state_layer
        # The folder is not known yet, and the reader does not depend on it.
        self._work = ReadingWork(Path(), self._name, self._precision, device, settings.prompt, *layers)
        _reader.cache_clear()  # the folder may hold another model now than when it was opened before
        self._reader = self._work.reader

    def make(self, stages: Stages, corpus: Corpus) -> dict[str, Any]:
        """Do the stages, and return what ``origin.json`` says; raises Interrupted."""
        settings = self._settings
        folder = stages.folder
        reader = self._reader
        reference = _reference(corpus, settings)
        self._check_language(reference)
        texts = [reference[index] for index in reader.order(reference)]
        origin_of_texts = "the texts given" if settings.texts else "the corpus"
        description = f"{len(texts)} sentences of {origin_of_texts}, Ledoit-Wolf"
        inputs = {"reader": reader.identity, "texts": rows_hash(texts)}
        stages.run("reference", inputs, OUTPUTS["reference"], lambda: self._read_all(folder, texts))

        def fit() -> list[str]:
            fit_parts(reader, _all_readings(folder, len(texts)), settings).write(folder / PARTS)
            return [f"by {description}"]

        fitting = settings.model_dump(include=_FITTING)
        stages.run("parts", {**inputs, **fitting}, OUTPUTS["parts"], fit)
        # The Origin opens the model by itself; two copies of it would be held.
        _reader.cache_clear()
        return {
            "language_model": self._name,
            "precision": self._precision,
            "prompt": reader.prompt,
            "own_layer": reader.own_layer,
            "state_layer": reader.state_layer,
            "reader": reader.identity,
            "reference": description,
        }

    def _check_language(self, reference: list[str]) -> None:
        """Warn if the tokenizer needs too many tokens a character, as one of another language does."""
        tokens = self._reader.tokens_per_character(reference)
        if tokens > MOST_TOKENS_PER_CHARACTER:
            logger.warning(
                f"{self._name} cuts these documents into {tokens:.1f} tokens a character, so it was made for another "
                "language or script, and its next words say little of them. Name a model of their language with "
                "`language_model`, and a `prompt` in it."
            )

    def _read_all(self, folder: Path, texts: list[str]) -> list[str]:
        # The workers read their sentences from this file.
        write_json(folder / TEXTS, {"texts": texts})
        work = replace(self._work, folder=folder.resolve(), expected=self._reader.identity)
        return _read_shards(work, len(texts), self._settings)


def _reference(corpus: Corpus, settings: OriginSettings) -> list[str]:
    """Return the sentences that say what is usual: the user's own texts, or sentences of the corpus."""
    if not settings.texts:
        return reference_sentences(corpus, settings.reference, settings.seed, fewest=FEWEST)
    texts = list(dict.fromkeys(text for source in settings.texts for text in unlabelled_texts(source)))
    if len(texts) < FEWEST:
        raise ConfigError(
            f"Whitening needs {FEWEST} different texts at least, and better 500; {', '.join(settings.texts)} hold "
            f"{len(texts)}. Give more, or leave texts out to take sentences of the corpus."
        )
    order = np.random.default_rng(settings.seed).permutation(len(texts))[: settings.reference]
    return [texts[index] for index in order]


def fit_parts(reader: Reader, readings: Readings, settings: OriginSettings) -> Parts:
    """Return the parts of a vector, fitted on what was read of the reference sentences."""
    weights = {OWN: settings.weight_own, STATE: settings.weight_state, WORDS: settings.weight_words}
    total = sum(weights.values())
    words = WordPart.fit(
        reader.words, readings.log_probs, kept_words=settings.kept_words, dim=settings.dimensions, seed=settings.seed
    )
    return Parts(
        own=_whitened_part(readings.own),
        state=_whitened_part(readings.states),
        words=words,
        weights={name: weight / total for name, weight in weights.items()},
    )


def _whitened_part(states: Embeddings) -> WhitenedPart:
    whitening = Whitening.shrunk(states)
    return WhitenedPart(whitening.mean, whitening.matrix)


@dataclass(frozen=True)
class ReadingWork:
    """Makes shards of reference sentences; picklable, opens the model where it runs, once in a process."""

    folder: Path  # of the Origin in the making
    language_model: str
    precision: Arithmetic
    device: str
    prompt: str
    own_layer: int
    state_layer: int | None
    expected: str | None = None  # identity that the reader must have; None for any

    @property
    def reader(self) -> Reader:
        """The reader, its model opened once in a process."""
        return _reader(self.language_model, self.precision, self.device, self.prompt, self.own_layer, self.state_layer)

    def sentences(self, shard: int) -> list[str]:
        """Return the sentences of a shard."""
        texts: list[str] = read_json(self.folder / TEXTS)["texts"]
        return texts[shard * SHARD : (shard + 1) * SHARD]

    def __call__(self, shard: int) -> Shard:
        """Make a shard; ModelError if the language model is not the expected one."""
        started = time.perf_counter()
        reader = self.reader
        if self.expected not in (None, reader.identity):
            raise ModelError(
                f"Every worker must have the same language model; {self.language_model} is another one here. Copy its "
                "folder to this machine again."
            )
        texts = self.sentences(shard)
        with counted(apart=True) as unread:
            reader.note_unread(texts)
        readings = reader.read(texts)
        sink = io.BytesIO()
        np.savez(sink, own=readings.own, states=readings.states, log_probs=readings.log_probs)
        return Shard(sink.getvalue(), len(texts), time.perf_counter() - started, unread=unread.summary)


@lru_cache(maxsize=1)
def _reader(
    name: str, precision: Arithmetic, device: str, prompt: str, own_layer: int, state_layer: int | None
) -> Reader:
    generator = open_language_model(name, precision=precision, device=device)
    return Reader(generator, prompt=prompt, own_layer=own_layer, state_layer=state_layer)


def _read_shards(work: ReadingWork, count: int, settings: OriginSettings) -> list[str]:
    """Read the reference sentences, or go on."""
    sizes = [min(SHARD, count - start) for start in range(0, count, SHARD)]
    try:
        with sharded_job(work.folder / REFERENCE, "origin", SUFFIX) as job:
            job.begin(reader={"identity": work.expected})
            finished = job.finished(len(sizes))
            default_workers = usual_workers(len(sizes) - len(finished), work.device)
            missing = sum(sizes) - sum(sizes[shard] for shard in finished)
            # The middle shard is typical, as sentences are ordered by length.
            _log_estimate(work, len(sizes) // 2, missing, settings.workers or default_workers)
            gpus = 0 if work.device == "cpu" else 1
            executor = settings.choose_executor(gpus=gpus, default_workers=default_workers)
            job.make(work, executor, sizes, unit="sentence")
            cost = job.finish([{"sentences": size} for size in sizes])
            note(job.unread(count), work.reader)
    except KeyboardInterrupt:
        raise Interrupted from None
    return [f"{count} sentences, {cost['seconds'] / count:.2g} s of a worker each"]


def _log_estimate(work: ReadingWork, shard: int, missing: int, workers: int) -> None:
    """Say how long reading will take, by the time of a few sentences of a shard."""
    if missing <= SHARD:
        return
    reader = work.reader
    few = work.sentences(shard)[:4]
    with torch_threads(1 if workers > 1 else None):
        # The first reading warms up.
        reader.read(few[:1])
        started = time.perf_counter()
        reader.read(few)
    minutes = (time.perf_counter() - started) / len(few) * missing / workers / 60
    logger.info(f"reference: {missing} sentences to read, about {minutes:.0f} minutes; it can be stopped and continued")


def _all_readings(folder: Path, count: int) -> Readings:
    """Return what was read of all reference sentences."""
    job = ShardedJob(folder / REFERENCE, "origin", SUFFIX)
    readings = []
    for shard in range(-(-count // SHARD)):
        with np.load(job.path(shard), allow_pickle=False) as arrays:
            readings.append(Readings(arrays["own"], arrays["states"], arrays["log_probs"]))
    return Readings.concatenate(readings)
