"""Origin: from running documents to a similarity, without labels.

    samesense origin documents.jsonl.gz --output origins/mine
    samesense similarity origin:origins/mine "A man is eating." "Someone has a meal."

The folder holds ``corpus/``, ``index/``, ``discriminator/``, ``generator/`` (unless a pretrained language model takes
its place, or its terms have no weight), ``cache/``, ``manifest.json`` and, once all stages are done, ``origin.json``.

Source: Sun et al. 2022 (TACL), "Sentence Similarity Based on Contexts"; settings in ``configs/origin/``.
Differs: see :class:`~samesense.context.origin.origin.Origin` and the classes that it is made of.
    The paper has no public code.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from samesense.context.corpus.corpus import Corpus, hold_out
from samesense.context.discriminator.encoder import Discriminator
from samesense.context.discriminator.training import train_discriminator
from samesense.context.generator.base import KINDS, Cells, Kind
from samesense.context.generator.language_models import open_language_model
from samesense.context.generator.seq2seq import Seq2SeqGenerator
from samesense.context.generator.tokens import train_tokenizer
from samesense.context.generator.training import GeneratorTraining, train_generator
from samesense.context.generator.transformer import Architecture, Seq2Seq
from samesense.context.origin.origin import FILE, Origin
from samesense.context.retrieval.tfidf import Tfidf
from samesense.data.documents import running_documents
from samesense.encoder.precision import inference_precision
from samesense.encoder.vectors import read_words
from samesense.errors import ConfigError
from samesense.files import only_writer, replacing, write_json, write_text
from samesense.recipes.origin.settings import OriginSettings
from samesense.recipes.origin.stages import Interrupted, Stages, describe_corpus, fingerprint, first_words
from samesense.training import manifest
from samesense.training.callbacks import History, Progress, StopOnInterrupt
from samesense.training.fit import newest_checkpoint

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import TrainerCallback

logger = logging.getLogger(__name__)

WORK = "work"
"""Folder of what is needed only until a stage is done: checkpoints, single models, the tokenizer."""

CHECKED_WINDOWS = 200
"""Held-out windows on which a trained generator is measured."""

Arithmetic = Literal["float32", "bfloat16"]


def run(sources: Sequence[str], settings: OriginSettings, output: Path, *, overwrite: bool = False) -> bool:
    """Make an Origin, or go on making it; what is there with the same inputs is not made again.

    For sources see :func:`~samesense.data.documents.running_documents`. Returned is False if it was
    interrupted; the same call goes on.
    """
    scheme = settings.scheme()
    _check_apart(sources, output)
    language_model = _settled(settings.language_model)
    if language_model is not None and scheme.weights.generative:
        open_language_model(language_model)  # now, not when the rest is done
    prints = {source: fingerprint(source) for source in sources}
    record = manifest.describe("origin", settings.model_dump(), prints)
    stages = Stages(output, record, overwrite=overwrite)
    with only_writer(output):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        precision = inference_precision(settings.precision, device)
        try:
            corpus = _corpus(stages, sources, prints, settings)
            _discriminator(stages, corpus, settings, precision)
            if not scheme.weights.generative:
                logger.info("generator: none, since its terms have no weight")
            elif language_model is None:
                _generator(stages, corpus, settings, precision)
        except Interrupted:
            return False
        shutil.rmtree(output / WORK, ignore_errors=True)
        logger.info("index: of words and sentence vectors")
        Tfidf(corpus, output / "index", unigrams=settings.unigrams)
        Discriminator.open(output / "discriminator", corpus, output / "index", device=str(device))
        content = {
            "shape": asdict(corpus.shape), "unigrams": settings.unigrams, "language_model": language_model,
            "precision": settings.score_precision, "scheme": asdict(scheme),
        }  # fmt: skip
        write_json(output / FILE, content)
        logger.info(Origin.open(output, device=str(device)).protocol)
        stages.finish()
        return True


def _corpus(stages: Stages, sources: Sequence[str], prints: dict[str, str], settings: OriginSettings) -> Corpus:
    folder, shape = stages.folder / "corpus", settings.shape()
    how = {"language": settings.language, "paragraphs": settings.paragraphs}

    def documents() -> Iterator[list[list[str]]]:
        every = chain.from_iterable(
            running_documents(source, language=settings.language, paragraphs=settings.paragraphs) for source in sources
        )
        return first_words(every, settings.corpus_words)

    def make() -> list[str]:
        corpus = Corpus(folder, shape) if folder.exists() else Corpus.build(folder, documents(), shape)
        return [describe_corpus(corpus)]

    inputs = {"sources": [prints[source] for source in sources], "corpus_words": settings.corpus_words, **how}
    stages.run("corpus", inputs, ["corpus", ".corpus-building", FILE], make)
    return Corpus(folder, shape)


def _discriminator(stages: Stages, corpus: Corpus, settings: OriginSettings, precision: Arithmetic) -> None:
    training = settings.discriminator(precision)
    work = stages.folder / WORK / "discriminator"

    def make() -> list[str]:
        words = None if settings.word_vectors is None else read_words(Path(settings.word_vectors).expanduser())
        trained = train_discriminator(
            corpus, training, work / "checkpoints", word_vectors=words,
            resume_from=newest_checkpoint(work / "checkpoints"), callbacks=_callbacks(stages, "discriminator"),
        )  # fmt: skip
        if trained.interrupted:
            raise Interrupted
        shutil.rmtree(stages.folder / "discriminator", ignore_errors=True)
        trained.encoder.save(stages.folder / "discriminator")
        right = ", ".join(f"{name} {100 * value:.1f} %" for name, value in trained.accuracies.items())
        return [f"{trained.steps} steps; right on {trained.held_out} windows held out: {right}"]

    vectors = None if settings.word_vectors is None else fingerprint(settings.word_vectors)
    inputs = {**_windows(corpus), "training": asdict(training), "word_vectors": vectors}
    stages.run("discriminator", inputs, ["discriminator", f"{WORK}/discriminator", FILE], make)


def _generator(stages: Stages, corpus: Corpus, settings: OriginSettings, precision: Arithmetic) -> None:
    training = settings.generator(precision)
    groups: list[tuple[Kind, ...]] = [KINDS] if settings.models == "one" else [(kind,) for kind in KINDS]

    def make() -> list[str]:
        work = stages.folder / WORK / "generator"
        tokenizer = _tokenizer(corpus, settings.vocabulary, work / "tokenizer.json")
        models: dict[Kind, Seq2Seq] = {}
        for group in groups:
            models |= dict.fromkeys(group, _model(stages, corpus, tokenizer, group, training, work))
        generator = Seq2SeqGenerator(models, tokenizer, settings.reading)
        generator.save(stages.folder / "generator")
        return [generator.protocol, _perplexities(generator, corpus, training)]

    inputs = {
        **_windows(corpus), "training": asdict(training), "vocabulary": settings.vocabulary, "models": settings.models
    }  # fmt: skip
    stages.run("generator", inputs, ["generator", f"{WORK}/generator", FILE], make)


def _model(
    stages: Stages,
    corpus: Corpus,
    tokenizer: Tokenizer,
    kinds: tuple[Kind, ...],
    training: GeneratorTraining,
    work: Path,
) -> Seq2Seq:
    """Train a model for some directions, or take it up where it was left."""
    from safetensors.torch import load_file, save_file

    name = "all" if kinds == KINDS else kinds[0]
    kept = work / f"{name}.safetensors"
    if kept.is_file():
        shape = Architecture.of(
            training.size, tokenizer.get_vocab_size(), max_tokens=training.max_tokens, dropout=training.dropout
        )
        model = Seq2Seq(shape)
        model.load_state_dict(load_file(kept))
        return model
    checkpoints = work / f"{name}-checkpoints"
    trained = train_generator(
        corpus, tokenizer, kinds, training, checkpoints, resume_from=newest_checkpoint(checkpoints),
        callbacks=_callbacks(stages, f"generator-{name}"),
    )  # fmt: skip
    if trained.interrupted:
        raise Interrupted
    weights = {key: value.detach().cpu().contiguous() for key, value in trained.model.state_dict().items()}
    with replacing(kept) as beside:
        save_file(weights, beside)
    shutil.rmtree(checkpoints, ignore_errors=True)
    return trained.model


def _tokenizer(corpus: Corpus, size: int, path: Path) -> Tokenizer:
    from tokenizers import Tokenizer

    if path.is_file():
        return Tokenizer.from_file(str(path))
    tokenizer = train_tokenizer(corpus, size)
    write_text(path, tokenizer.to_str())
    return tokenizer


def _perplexities(generator: Seq2SeqGenerator, corpus: Corpus, training: GeneratorTraining) -> str:
    """Return, in words, the perplexity of each direction on windows that were held out."""
    held = hold_out(corpus, training.held_out_windows, training.seed)[1][:CHECKED_WINDOWS]
    windows = corpus.windows_at(held)
    at = np.arange(len(windows))
    measured = generator.measure(Cells([window.centre for window in windows], windows, at, at))
    perplexities = np.exp(-measured.totals.sum(axis=1) / measured.tokens.sum(axis=1))
    found = ", ".join(f"{kind} {value:.1f}" for kind, value in zip(KINDS, perplexities, strict=True))
    return f"perplexity a token on {len(windows)} windows held out: {found}"


def _check_apart(sources: Sequence[str], output: Path) -> None:
    """Raise if the output lies in a folder of documents, which would be others with each file that is written."""
    for source in sources:
        folder = Path(source).expanduser()
        if folder.is_dir() and output.resolve().is_relative_to(folder.resolve()):
            raise ConfigError(
                f"The output must not lie in a folder of documents, which it would be read with; {output} lies in "
                f"{source}. Choose an output folder elsewhere."
            )


def _settled(model: str | None) -> str | None:
    """Return a name that means the same from every folder: a path made absolute, or the name on the hub."""
    path = None if model is None else Path(model).expanduser()
    return str(path.resolve()) if path is not None and path.is_dir() else model


def _windows(corpus: Corpus) -> dict[str, Any]:
    shape = corpus.shape
    return {"corpus": corpus.sha256, "left": shape.left, "right": shape.right, "least": shape.least}


def _callbacks(stages: Stages, name: str) -> list[TrainerCallback]:
    return [Progress(), History(stages.folder / f"history-{name}.jsonl"), StopOnInterrupt()]
