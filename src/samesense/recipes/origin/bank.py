"""The stages of an Origin by a bank: draw it, read sentences that say what is usual, whiten.

Reading is what takes long. Its shards are resumed, made exactly once, and shared by processes or a Ray cluster; see
:mod:`samesense.execution.sharded`.
"""

from __future__ import annotations

import io
import logging
import time
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch

from samesense.context.corpus.corpus import Corpus
from samesense.context.generator.language_models import open_language_model
from samesense.context.origin.bank import Bank
from samesense.context.origin.banked import BANK, CELLS, OWN, WHITENING, parts_of
from samesense.context.origin.blocks import Block, write_blocks
from samesense.context.origin.origin import FILE
from samesense.context.origin.reader import Reader, Reading
from samesense.context.origin.scheme import reference_sentences
from samesense.data.sentences import unlabelled_texts
from samesense.encoder.forward.precision import inference_precision
from samesense.encoder.maps.whitening import Whitening
from samesense.errors import ConfigError, ModelError
from samesense.execution.executors import usual_workers
from samesense.execution.sharded import Shard, ShardedJob, sharded_job
from samesense.execution.threads import torch_threads
from samesense.execution.unread import counted, note
from samesense.files import read_json, write_json
from samesense.hashes import rows_hash
from samesense.recipes.origin.settings import LANGUAGE_MODEL, Arithmetic, OriginSettings, settled
from samesense.recipes.origin.stages import Interrupted, Stages

logger = logging.getLogger(__name__)

REFERENCE, TEXTS = "reference", "reference.json"
"""Folder of what was read of the sentences that say what is usual, and the sentences."""

OUTPUTS = {"bank": [BANK, FILE], "reference": [REFERENCE, TEXTS, FILE], "whitening": [WHITENING, FILE]}
"""What each stage makes."""

SHARD = 50
"""Sentences of a shard, and what a kill may cost a worker."""

SUFFIX = ".npz"
"""Of the file of a shard."""

FEWEST = 50
"""Sentences below which whitening says nothing."""


class BankMaker:
    """Reads what is not read yet.

    Raises:
        ModelError: if the language model cannot be opened, or is not causal; now, not when the corpus is there.
    """

    def __init__(self, settings: OriginSettings, device: str) -> None:
        self._settings = settings
        self._name = str(settled(settings.language_model or LANGUAGE_MODEL))
        self._precision = inference_precision(settings.score_precision, torch.device(device))
        self._work = ReadingWork(Path(), self._name, self._precision, device, settings.layer)
        _reader.cache_clear()  # the folder may hold another model now than when it was opened before
        self._reader = self._work.reader

    def make(self, stages: Stages, corpus: Corpus) -> dict[str, Any]:
        """Do the stages, and return what ``origin.json`` says; raises Interrupted."""
        settings, folder = self._settings, stages.folder
        drawn = self._drawn(corpus)
        stages.run("bank", drawn, OUTPUTS["bank"], lambda: self._draw(corpus, folder))
        reference = _reference(corpus, settings)
        texts = [reference[at] for at in self._reader.order(reference)]
        note = f"{len(texts)} sentences of {'the texts given' if settings.texts else 'the corpus'}, Ledoit-Wolf"
        read = {**drawn, "layer": self._reader.layer, "texts": rows_hash(texts)}
        stages.run("reference", read, OUTPUTS["reference"], lambda: self._gather(folder, texts))

        def whiten() -> list[str]:
            write_blocks(folder / WHITENING, fit(_gathered(folder, len(texts)), settings))
            return [f"by {note}"]

        how = {"cells": settings.cells, "own": settings.own}
        stages.run("whitening", {**read, **how}, OUTPUTS["whitening"], whiten)
        _reader.cache_clear()
        return {
            "language_model": self._name, "precision": self._precision, "layer": self._reader.layer,
            "reader": self._reader.identity, "cells": settings.cells, "note": note,
        }  # fmt: skip

    def _drawn(self, corpus: Corpus) -> dict[str, Any]:
        settings = self._settings
        size = {"windows": settings.windows, "tokens": settings.tokens, "seed": settings.seed}
        return {"corpus": corpus.sha256, "shape": asdict(corpus.shape), "reader": self._reader.identity, **size}

    def _draw(self, corpus: Corpus, folder: Path) -> list[str]:
        how = self._settings
        bank = Bank.draw(corpus, self._reader.tail, windows=how.windows, tokens=how.tokens, seed=how.seed)
        bank.write(folder / BANK)
        return [f"{how.windows} contexts of {how.tokens} tokens from {len(corpus.windows)}"]

    def _gather(self, folder: Path, texts: list[str]) -> list[str]:
        write_json(folder / TEXTS, {"texts": texts})
        work = replace(self._work, folder=folder.resolve(), expected=self._reader.identity)
        return _gather(work, len(texts), self._settings)


def _reference(corpus: Corpus, settings: OriginSettings) -> list[str]:
    """Return the sentences that say what is usual: the user's own texts, or sentences of the corpus."""
    if not settings.texts:
        return reference_sentences(corpus, settings.reference, settings.seed)
    given = list(dict.fromkeys(text for source in settings.texts for text in unlabelled_texts(source)))
    if len(given) < FEWEST:
        raise ConfigError(
            f"Whitening needs {FEWEST} different texts at least, and better 1,000; {', '.join(settings.texts)} hold "
            f"{len(given)}. Give more, or leave texts out to take sentences of the corpus."
        )
    order = np.random.default_rng(settings.seed).permutation(len(given))[: settings.reference]
    return [given[i] for i in order]


def fit(reading: Reading, settings: OriginSettings) -> list[Block]:
    """Return the whitening of the contexts' numbers, and of own vectors if they count."""
    parts, weights = parts_of(reading, settings.cells), {CELLS: 1.0, OWN: settings.own}
    whitened = {name: Whitening.shrunk(parts[name]) for name, weight in weights.items() if weight > 0}
    total = sum(weights.values())
    return [Block(name, found.mean, found.matrix, weights[name] / total) for name, found in whitened.items()]


@dataclass(frozen=True)
class ReadingWork:
    """Makes shards of reference sentences; picklable, opens the model where it runs, once in a process."""

    folder: Path  # of the Origin in the making
    language_model: str
    precision: Arithmetic
    device: str
    layer: int
    expected: str | None = None  # identity that the reader must have; None for any

    @property
    def reader(self) -> Reader:
        """The reader, its model opened once in a process."""
        return _reader(self.language_model, self.precision, self.device, self.layer)

    def sentences(self, shard: int) -> list[str]:
        """Return the sentences of a shard."""
        texts: list[str] = read_json(self.folder / TEXTS)["texts"]
        return texts[shard * SHARD : (shard + 1) * SHARD]

    def __call__(self, shard: int) -> Shard:
        """Make a shard; ModelError if the language model is not the expected one."""
        started, reader = time.perf_counter(), self.reader
        if self.expected not in (None, reader.identity):
            raise ModelError(
                f"Every worker must have the same language model; {self.language_model} is another one here. Copy its "
                "folder to this machine again."
            )
        texts = self.sentences(shard)
        with counted(apart=True) as unread:
            reader.note_unread(texts)
        found = reader.read(texts, Bank.read(self.folder / BANK).tails)
        sink = io.BytesIO()
        np.savez(sink, logs=found.logs, own=found.own)
        return Shard(sink.getvalue(), len(texts), time.perf_counter() - started, unread=unread.summary)


@lru_cache(maxsize=1)
def _reader(name: str, precision: Arithmetic, device: str, layer: int) -> Reader:
    return Reader(open_language_model(name, precision=precision, device=device), layer)


def _gather(work: ReadingWork, count: int, settings: OriginSettings) -> list[str]:
    """Read the reference sentences, or go on."""
    sizes = [min(SHARD, count - start) for start in range(0, count, SHARD)]
    try:
        with sharded_job(work.folder / REFERENCE, "origin", SUFFIX) as job:
            job.begin(reader={"identity": work.expected})
            done = job.finished(len(sizes))
            usual = usual_workers(len(sizes) - len(done), work.device)
            missing = sum(sizes) - sum(sizes[shard] for shard in done)
            _estimate(work, len(sizes) // 2, missing, settings.workers or usual)
            executor = settings.choose_executor(gpus=0 if work.device == "cpu" else 1, default_workers=usual)
            job.make(work, executor, sizes, unit="sentence")
            cost = job.finish([{"sentences": size} for size in sizes])
            note(job.unread(count), work.reader)
    except KeyboardInterrupt:
        raise Interrupted from None
    return [f"{count} sentences, {cost['seconds'] / count:.2g} s of a worker each"]


def _estimate(work: ReadingWork, shard: int, missing: int, workers: int) -> None:
    """Say how long reading will take, by the time of a few sentences of a shard."""
    if missing <= SHARD:
        return
    reader, tails, few = work.reader, Bank.read(work.folder / BANK).tails, work.sentences(shard)[:4]
    with torch_threads(1 if workers > 1 else None):
        reader.read(few[:1], tails)
        started = time.perf_counter()
        reader.read(few, tails)
    minutes = (time.perf_counter() - started) / len(few) * missing / workers / 60
    logger.info(f"reference: {missing} sentences to read, about {minutes:.0f} minutes; it can be stopped and continued")


def _gathered(folder: Path, count: int) -> Reading:
    parts: list[tuple[np.ndarray, np.ndarray]] = []
    job = ShardedJob(folder / REFERENCE, "origin", SUFFIX)
    for shard in range(-(-count // SHARD)):
        with np.load(job.path(shard), allow_pickle=False) as arrays:
            parts.append((arrays["logs"], arrays["own"]))
    logs, own = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Reading(logs, own)
