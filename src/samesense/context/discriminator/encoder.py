"""The trained network with its vocabulary: sentences in, sentence vectors out, and the folder that holds both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from scipy.sparse import csr_array

from samesense.context.corpus.corpus import Corpus, Shape, spans
from samesense.context.corpus.words import words_and_marks
from samesense.context.discriminator.lstm import Coherence, Vocabulary, padded
from samesense.errors import ConfigError, ModelError, OutputError
from samesense.execution.progress import progress_bar
from samesense.failures import opening
from samesense.files import append, map_array, replacing_folder, truncate, write_json, write_text
from samesense.hashes import content_hash, text_hash
from samesense.schemas import Record, read_checked
from samesense.types import Embeddings, Floats, Indices

BATCH_SENTENCES = 256
"""Sentences of one forward, of about the same length."""

BLOCK_SENTENCES = 4096
"""Sentences of a corpus encoded, and written, at a time: what a killed run may lose."""

BLOCK_ROWS = 16_384
"""Sentences of the corpus multiplied at a time."""


class SentenceEncoder:
    """Turns sentences into the vectors that the discriminator compares."""

    def __init__(self, model: Coherence, vocabulary: Vocabulary, shape: Shape, most_words: int = 64) -> None:
        if model.embedding.num_embeddings != len(vocabulary):
            raise ModelError(
                f"The network has {model.embedding.num_embeddings} word vectors and the vocabulary {len(vocabulary)} "
                "numbers; they must be of one training run."
            )
        if most_words < 1:
            raise ConfigError(f"most_words must be at least 1; received {most_words}.")
        self.model = model
        self.vocabulary = vocabulary
        self.shape = shape
        self.most_words = most_words

    @property
    def dim(self) -> int:
        """Size of a sentence vector."""
        return 2 * self.model.lstm.hidden_size

    def numbers(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the numbers of the words of each sentence that are read."""
        return [self.vocabulary.numbers(sentence, self.most_words) for sentence in sentences]

    def beyond(self, sentences: Sequence[str]) -> list[str]:
        """Return those of the sentences that have more words than are read of one."""
        return [text for text in sentences if len(words_and_marks(text)) > self.most_words]

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Return the vectors of sentences, float32 ``(sentences, dim)``, in their order."""
        numbers = self.numbers(sentences)
        # By length, so that batches have little padding.
        order = sorted(range(len(numbers)), key=lambda row: len(numbers[row]))
        out = np.empty((len(numbers), self.dim), dtype=np.float32)
        device = self.model.last.weight.device
        training = self.model.training
        self.model.eval()
        try:
            with torch.inference_mode():
                for start in range(0, len(order), BATCH_SENTENCES):
                    rows = order[start : start + BATCH_SENTENCES]
                    tokens, lengths = padded([numbers[row] for row in rows])
                    out[rows] = self.model.encode(tokens.to(device), lengths).cpu().numpy()
        finally:
            self.model.train(training)
        return out

    def identity(self) -> str:
        """Return a hash of everything that decides a vector: weights, words and the longest sentence."""
        chunks: list[bytes | memoryview] = [json.dumps([self.vocabulary.words, self.most_words]).encode()]
        # Sorted, so that the order in which weights are registered does not matter.
        for name, value in sorted(self.model.state_dict().items()):
            chunks += [f"{name} {tuple(value.shape)}".encode(), value.detach().cpu().contiguous().numpy().data]
        return content_hash(chunks)

    def save(self, folder: Path) -> None:
        """Write network and vocabulary to a new folder, in one rename; OutputError if the folder exists."""
        if folder.exists():
            raise OutputError(f"{folder} exists already. Choose another folder for the discriminator, or remove it.")
        weights = {name: value.detach().cpu().contiguous() for name, value in self.model.state_dict().items()}
        config = {"network": self.model.settings, "shape": asdict(self.shape), "most_words": self.most_words}
        with replacing_folder(folder) as beside:
            save_file(weights, str(beside / "model.safetensors"))
            write_text(beside / "words.txt", "\n".join(self.vocabulary.words) + "\n")
            write_json(beside / "config.json", config)


class DiscriminatorRecord(Record):
    """What the ``config.json`` of a discriminator holds."""

    network: dict[str, Any]
    shape: dict[str, int]
    most_words: int


def load_sentence_encoder(folder: Path, *, device: str = "cpu") -> SentenceEncoder:
    """Return the encoder that :meth:`SentenceEncoder.save` wrote to ``folder``."""
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} holds no discriminator: it has no config.json. Train one first.")
    config = read_checked(folder / "config.json", DiscriminatorRecord)
    with opening(f"the discriminator in {folder}", "Train it again."):
        model = Coherence(**config.network)
        model.load_state_dict(load_file(str(folder / "model.safetensors")))
        words = (folder / "words.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
        return SentenceEncoder(model.to(device).eval(), Vocabulary(words), Shape(**config.shape), config.most_words)


def corpus_vectors(encoder: SentenceEncoder, corpus: Corpus, folder: Path) -> Embeddings:
    """Return the vectors of all sentences of a corpus ``(sentences, dim)``, as they lie on the disk.

    They are made once for these weights and this corpus. A run that is killed goes on where it stopped.
    """
    name = text_hash(f"{encoder.identity()} {corpus.sha256}")[:32]
    path = folder / f"vectors-{name}.bin"
    # A name that does not change, unlike that of a temporary file, so that the next run finds it.
    beside = folder / f".vectors-{name}.part"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        # Bytes of a vector in float32.
        row = 4 * encoder.dim
        done = beside.stat().st_size // row if beside.exists() else 0
        # A run that was killed may have written a part of a vector.
        truncate(beside, done * row)
        with progress_bar("encode the corpus", "sentence", len(corpus), initial=done, leave=False) as bar:
            for start in range(done, len(corpus), BLOCK_SENTENCES):
                end = min(len(corpus), start + BLOCK_SENTENCES)
                append(beside, encoder.encode(corpus.sentences(range(start, end))))
                bar.update(end - start)
        beside.rename(path)
    return map_array(path, np.float32, len(corpus), encoder.dim)


class Discriminator:
    """The trained network over one corpus, whose sentence vectors are made once and kept on the disk.

    The logit of a sentence in a context is its query for the left by the mean of the left vectors, the same for the
    right, and a term of its own; see :class:`~samesense.context.discriminator.lstm.Coherence`. A mean of products is
    the product of the mean, so each neighbouring sentence is multiplied once, however many windows it is in.

    Raises:
        ConfigError: if the corpus is cut into other windows.
        DataError: if cached vectors are damaged.
    """

    def __init__(self, encoder: SentenceEncoder, corpus: Corpus, folder: Path) -> None:
        trained_shape, corpus_shape = ((shape.left, shape.right) for shape in (encoder.shape, corpus.shape))
        if trained_shape != corpus_shape:
            raise ConfigError(
                f"The discriminator was trained on {trained_shape[0]} sentences before and {trained_shape[1]} after "
                f"the centre, and the corpus is cut into {corpus_shape[0]} and {corpus_shape[1]}. Open it with the "
                "same shape, or train it again."
            )
        self.encoder = encoder
        self.corpus = corpus
        self._vectors = corpus_vectors(encoder, corpus, folder)

    @classmethod
    def open(cls, model: Path, corpus: Corpus, folder: Path, *, device: str = "cpu") -> Discriminator:
        """Return the discriminator of a model folder, over ``corpus``, with its cache in ``folder``."""
        return cls(load_sentence_encoder(model, device=device), corpus, folder)

    def scores(self, vectors: Embeddings, windows: Sequence[int] | Indices) -> Floats:
        """Return log p(y = 1) of each sentence vector ``(sentences, dim)`` in each window ``(sentences, windows)``."""
        ids = np.asarray(windows, dtype=np.int64)
        device = self.encoder.model.last.weight.device
        with torch.inference_mode():
            queries = self.encoder.model.queries(torch.from_numpy(np.asarray(vectors)).to(device))
        left, right, centre = (query.detach().cpu().numpy() for query in queries)
        first, end = self.corpus.window_bounds(ids)
        logits = self._products(left, first, ids) + self._products(right, ids + 1, end) + centre[:, None]
        # The logarithm of the sigmoid, without overflow.
        scores: Floats = -np.logaddexp(0.0, -logits)
        return scores

    def _products(self, queries: Embeddings, starts: Indices, ends: Indices) -> Floats:
        """Return each query times the mean of the vectors from each start up to its end ``(queries, spans)``.

        An empty span, a side that takes no part, gives 0. In float64, so that what is computed beside a product
        changes nothing that a rounding to 9 decimals would show.
        """
        rows, inverse = np.unique(spans(starts, ends), return_inverse=True)
        products = np.empty((len(rows), len(queries)))
        query_columns = queries.T.astype(np.float64)
        for start in range(0, len(rows), BLOCK_ROWS):
            products[start : start + BLOCK_ROWS] = (
                self._vectors[rows[start : start + BLOCK_ROWS]].astype(np.float64) @ query_columns
            )
        lengths = ends - starts
        shares = np.repeat(1.0 / np.maximum(lengths, 1), lengths)
        limits = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])
        means: Floats = csr_array((shares, inverse, limits), shape=(len(starts), len(rows))) @ products
        return means.T
