"""The stages of an Origin as published: a discriminator and generators trained on the documents."""

from __future__ import annotations

import logging
import shutil
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import TrainerCallback

from samesense.context.corpus.corpus import Corpus, hold_out, to_learn_from
from samesense.context.discriminator.encoder import Discriminator
from samesense.context.discriminator.training import train_discriminator
from samesense.context.generator.base import Cells, Kind, kinds_of
from samesense.context.generator.language_models import open_language_model
from samesense.context.generator.seq2seq import Seq2SeqGenerator
from samesense.context.generator.tokens import train_tokenizer
from samesense.context.generator.training import GeneratorTraining, train_generator
from samesense.context.generator.transformer import Architecture, Seq2Seq
from samesense.context.origin.origin import FILE
from samesense.context.retrieval.tfidf import Tfidf
from samesense.encoder.forward.precision import inference_precision
from samesense.encoder.vectors.lookup import read_words
from samesense.execution.progress import stage
from samesense.execution.trainer import newest_checkpoint
from samesense.files import replacing, write_text
from samesense.hashes import source_hash
from samesense.inference.names import settled_name
from samesense.recipes.origin.settings import Arithmetic, OriginSettings
from samesense.recipes.stages import Interrupted, Stages
from samesense.training.callbacks import History, Progress

logger = logging.getLogger(__name__)

WORK = "work"
"""Folder of what is needed only until a stage is done: checkpoints, single models, the tokenizer."""

OUTPUTS = {name: [name, f"{WORK}/{name}", FILE] for name in ("discriminator", "generator")}
"""What each stage makes."""

CHECKED_WINDOWS = 200
"""Held-out windows on which a trained generator is measured."""


class PaperMaker:
    """Trains what is not there yet.

    Raises:
        ConfigError: if settings contradict each other.
        ModelError: if the language model cannot be opened; now, not when the rest is done.
    """

    def __init__(self, settings: OriginSettings, device: torch.device) -> None:
        self._settings = settings
        self._device = device
        self._scheme = settings.scheme()
        self._language_model = settings.language_model and settled_name(settings.language_model)
        if self._language_model is not None and self._scheme.weights.generative:
            # Only to raise now: scoring opens it again, after hours of training.
            open_language_model(self._language_model)

    def make(self, stages: Stages, corpus: Corpus) -> dict[str, Any]:
        """Do the stages, and return what ``origin.json`` says; raises Interrupted."""
        settings = self._settings
        folder = stages.folder
        precision = inference_precision(settings.precision, self._device)
        _discriminator(stages, corpus, settings, precision)
        if not self._scheme.weights.generative:
            logger.info("generator: none, since its terms have no weight")
        elif self._language_model is None:
            _generator(stages, corpus, settings, precision)
        shutil.rmtree(folder / WORK, ignore_errors=True)
        logger.info("index: of words and sentence vectors")
        with stage("index"):
            # Opened for the files they write, which whoever opens the Origin finds.
            Tfidf(corpus, folder / "index", unigrams=settings.unigrams)
            Discriminator.open(folder / "discriminator", corpus, folder / "index", device=str(self._device))
        return {
            "unigrams": settings.unigrams,
            "language_model": self._language_model,
            "scheme": asdict(self._scheme),
            "precision": inference_precision(settings.score_precision, self._device),
        }


def _discriminator(stages: Stages, corpus: Corpus, settings: OriginSettings, precision: Arithmetic) -> None:
    training = settings.discriminator(precision)
    work = stages.folder / WORK / "discriminator"

    def make() -> list[str]:
        words = None
        if settings.word_vectors is not None:
            words = read_words(Path(settings.word_vectors).expanduser())
        trained = train_discriminator(
            corpus,
            training,
            work / "checkpoints",
            word_vectors=words,
            resume_from=newest_checkpoint(work / "checkpoints"),
            callbacks=_callbacks(stages, "discriminator"),
        )
        if trained.interrupted:
            raise Interrupted
        # An encoder is not saved into a folder that exists, such as that of other settings.
        shutil.rmtree(stages.folder / "discriminator", ignore_errors=True)
        trained.encoder.save(stages.folder / "discriminator")
        right = ", ".join(f"{name} {100 * value:.1f} %" for name, value in trained.accuracies.items())
        return [f"{trained.steps} steps; right on {trained.held_out} windows held out: {right}"]

    vectors = None if settings.word_vectors is None else source_hash(settings.word_vectors)
    inputs = {**_windows(corpus), "training": asdict(training), "word_vectors": vectors}
    stages.run("discriminator", inputs, OUTPUTS["discriminator"], make)


def _generator(stages: Stages, corpus: Corpus, settings: OriginSettings, precision: Arithmetic) -> None:
    training = settings.generator(precision)
    kinds = kinds_of(settings.right_given)
    if settings.models == "one":
        groups: list[tuple[Kind, ...]] = [kinds]
    else:
        groups = [(kind,) for kind in kinds]

    def make() -> list[str]:
        work = stages.folder / WORK / "generator"
        # What is held out has no part in the vocabulary either.
        learnt = to_learn_from(corpus, hold_out(corpus, training.held_out_windows, training.seed)[1])
        tokenizer = _tokenizer(corpus, learnt, settings.vocabulary, work / "tokenizer.json")
        models: dict[Kind, Seq2Seq] = {}
        for group in groups:
            models |= dict.fromkeys(group, _model(stages, corpus, tokenizer, group, training, work))
        generator = Seq2SeqGenerator(models, tokenizer, settings.reading)
        generator.save(stages.folder / "generator")
        return [generator.protocol, _perplexities(generator, corpus, training)]

    inputs = {
        **_windows(corpus),
        "training": asdict(training),
        "vocabulary": settings.vocabulary,
        "models": settings.models,
        "right_given": settings.right_given,
    }
    stages.run("generator", inputs, OUTPUTS["generator"], make)


def _model(
    stages: Stages,
    corpus: Corpus,
    tokenizer: Tokenizer,
    kinds: tuple[Kind, ...],
    training: GeneratorTraining,
    work: Path,
) -> Seq2Seq:
    """Train a model for some directions, or take it up where it was left."""
    name = "all" if len(kinds) > 1 else kinds[0]
    weights_path = work / f"{name}.safetensors"
    if weights_path.is_file():
        shape = Architecture.of(
            training.size, tokenizer.get_vocab_size(), max_tokens=training.max_tokens, dropout=training.dropout
        )
        model = Seq2Seq(shape)
        model.load_state_dict(load_file(weights_path))
        return model
    checkpoints = work / f"{name}-checkpoints"
    trained = train_generator(
        corpus,
        tokenizer,
        kinds,
        training,
        checkpoints,
        resume_from=newest_checkpoint(checkpoints),
        callbacks=_callbacks(stages, f"generator-{name}"),
    )
    if trained.interrupted:
        raise Interrupted
    # safetensors refuses tensors that are not contiguous.
    weights = {key: value.detach().cpu().contiguous() for key, value in trained.model.state_dict().items()}
    # A file cut off here would pass for a finished model in the next call.
    with replacing(weights_path) as beside:
        save_file(weights, beside)
    shutil.rmtree(checkpoints, ignore_errors=True)
    return trained.model


def _tokenizer(corpus: Corpus, learnt: npt.NDArray[np.bool_], size: int, path: Path) -> Tokenizer:
    if path.is_file():
        return Tokenizer.from_file(str(path))
    tokenizer = train_tokenizer((corpus.sentence(int(i)) for i in np.flatnonzero(learnt)), size)
    write_text(path, tokenizer.to_str())
    return tokenizer


def _perplexities(generator: Seq2SeqGenerator, corpus: Corpus, training: GeneratorTraining) -> str:
    """Return, in words, the perplexity of each direction on windows that were held out."""
    held = hold_out(corpus, training.held_out_windows, training.seed)[1][:CHECKED_WINDOWS]
    windows = corpus.windows_at(held)
    indices = np.arange(len(windows))
    kinds = tuple(generator.models)
    measured = generator.measure(Cells([window.centre for window in windows], windows, indices, indices), kinds)
    perplexities = np.exp(-measured.totals.sum(axis=1) / measured.tokens.sum(axis=1))
    summary = ", ".join(f"{kind} {value:.1f}" for kind, value in zip(kinds, perplexities, strict=True))
    return f"perplexity a token on {len(windows)} windows held out: {summary}"


def _windows(corpus: Corpus) -> dict[str, Any]:
    shape = corpus.shape
    return {"corpus": corpus.sha256, "left": shape.left, "right": shape.right, "least": shape.least}


def _callbacks(stages: Stages, name: str) -> list[TrainerCallback]:
    return [Progress(), History(stages.folder / f"history-{name}.jsonl")]
