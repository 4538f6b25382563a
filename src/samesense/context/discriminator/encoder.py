"""The trained network with its vocabulary: sentences in, sentence vectors out, and the folder that holds both."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch

from samesense.context.corpus.corpus import Corpus
from samesense.context.corpus.windows import Shape
from samesense.context.discriminator.lstm import Coherence, padded
from samesense.context.discriminator.vocabulary import Vocabulary
from samesense.errors import ConfigError, ModelError, OutputError
from samesense.files import (
    append,
    content_hash,
    map_array,
    read_json,
    replacing_folder,
    text_hash,
    truncate,
    write_json,
    write_text,
)
from samesense.types import Embeddings

BATCH_SENTENCES = 256
"""Sentences of one forward, of about the same length."""

BLOCK_SENTENCES = 4096
"""Sentences of a corpus encoded, and written, at a time: what a killed run may lose."""


class Reader:
    """Turns sentences into the vectors that the discriminator compares.

    Args:
        model: the network.
        vocabulary: its words.
        shape: windows on which it is trained.
        most_words: further words of a sentence are not read.

    Raises:
        ModelError: if network and vocabulary do not fit.
        ConfigError: if ``most_words`` is below 1.
    """

    def __init__(self, model: Coherence, vocabulary: Vocabulary, shape: Shape, most_words: int = 64) -> None:
        if model.embedding.num_embeddings != len(vocabulary):
            raise ModelError(
                f"The network has {model.embedding.num_embeddings} word vectors and the vocabulary {len(vocabulary)} "
                "numbers; they must be of one training run."
            )
        if most_words < 1:
            raise ConfigError(f"most_words must be at least 1; received {most_words}.")
        self.model, self.vocabulary, self.shape, self.most_words = model, vocabulary, shape, most_words

    @property
    def dim(self) -> int:
        """Size of a sentence vector."""
        return 2 * self.model.lstm.hidden_size

    def numbers(self, sentences: Sequence[str]) -> list[list[int]]:
        """Return the numbers of the words of each sentence that are read."""
        return [self.vocabulary.numbers(sentence, self.most_words) for sentence in sentences]

    def encode(self, sentences: Sequence[str]) -> Embeddings:
        """Return the vectors of sentences, float32 ``(sentences, dim)``, in their order."""
        numbers = self.numbers(sentences)
        order = sorted(range(len(numbers)), key=lambda row: len(numbers[row]))
        out = np.empty((len(numbers), self.dim), dtype=np.float32)
        device, training = self.model.last.weight.device, self.model.training
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
        parts: list[bytes | memoryview] = [json.dumps([self.vocabulary.words, self.most_words]).encode()]
        for name, value in sorted(self.model.state_dict().items()):
            parts += [f"{name} {tuple(value.shape)}".encode(), value.detach().cpu().contiguous().numpy().data]
        return content_hash(parts)

    def save(self, folder: Path) -> None:
        """Write network and vocabulary to a new folder, in one rename.

        Raises:
            OutputError: if the folder exists.
        """
        from safetensors.torch import save_file

        if folder.exists():
            raise OutputError(f"{folder} exists already. Choose another folder for the discriminator, or remove it.")
        weights = {name: value.detach().cpu().contiguous() for name, value in self.model.state_dict().items()}
        config = {"network": self.model.settings, "shape": asdict(self.shape), "most_words": self.most_words}
        with replacing_folder(folder) as beside:
            save_file(weights, str(beside / "model.safetensors"))
            write_text(beside / "words.txt", "\n".join(self.vocabulary.words) + "\n")
            write_json(beside / "config.json", config)


def load_reader(folder: Path, *, device: str = "cpu") -> Reader:
    """Return the reader that :meth:`Reader.save` wrote to ``folder``.

    Raises:
        ModelError: if the folder holds none, or is damaged.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} holds no discriminator: it has no config.json. Train one first.")
    config = read_json(folder / "config.json")
    try:
        model = Coherence(**config["network"])
        model.load_state_dict(load_file(str(folder / "model.safetensors")))
        words = (folder / "words.txt").read_text(encoding="utf-8").removesuffix("\n").split("\n")
        shape, most_words = Shape(**config["shape"]), config["most_words"]
    except (OSError, KeyError, TypeError, RuntimeError, SafetensorError) as error:
        raise ModelError(f"{folder} holds a damaged discriminator ({error}). Train it again.") from error
    return Reader(model.to(device).eval(), Vocabulary(words), shape, most_words)


def corpus_vectors(reader: Reader, corpus: Corpus, folder: Path) -> Embeddings:
    """Return the vectors of all sentences of a corpus ``(sentences, dim)``, as they lie on the disk.

    They are made once for these weights and this corpus. A run that is killed goes on where it stopped.

    Args:
        reader: makes the vectors.
        corpus: the sentences.
        folder: holds vectors of any readers and corpora.

    Raises:
        DataError: if the file is damaged.
    """
    name = text_hash(f"{reader.identity()} {corpus.sha256}")[:32]
    path, beside = folder / f"vectors-{name}.bin", folder / f".vectors-{name}.part"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        row = 4 * reader.dim
        done = beside.stat().st_size // row if beside.exists() else 0
        truncate(beside, done * row)
        for start in range(done, len(corpus), BLOCK_SENTENCES):
            end = min(len(corpus), start + BLOCK_SENTENCES)
            append(beside, reader.encode(corpus.sentences(range(start, end))))
        beside.rename(path)
    flat = map_array(path, np.float32, len(corpus) * reader.dim)
    vectors: Embeddings = flat.reshape(len(corpus), reader.dim)
    return vectors
