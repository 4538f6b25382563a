"""Origin by next words: two sentences are alike if the same words are likely to say what they are about."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from samesense.context.corpus.corpus import Corpus, Shape
from samesense.context.generator.language_models import open_language_model
from samesense.context.origin.cache import CellCache, content_keys
from samesense.context.origin.parts import OWN, STATE, WORDS, Parts
from samesense.context.origin.reader import Reader
from samesense.context.origin.word_explanation import WordExplanation, explain_words
from samesense.errors import DataError
from samesense.execution.progress import progress_bar
from samesense.hashes import content_hash
from samesense.types import Embeddings, Pair, Scores

PARTS = "parts.npz"
"""File in the folder of an Origin."""

BLOCK = 64
"""Sentences read, and written, at a time: what a killed run may lose."""

logger = logging.getLogger(__name__)


class WordOrigin:
    """A :data:`~samesense.types.Score`, and an :data:`~samesense.types.Encode`: a sentence is one vector.

    A pretrained language model reads each sentence in a prompt that asks for it in one word. The words that are then
    more likely than usual are the sentence's contexts. Hidden states of the same model stand beside them, whitened by
    sentences without labels.

    Source: Sun et al. 2022 (TACL), section 3.3, for comparing sentences by contexts, here right contexts of one word
        and one term of Eq. 3; Jiang et al. 2023 for the prompt; Su et al. 2021 for whitening; Levy and Goldberg 2014
        for positive pointwise mutual information.
    Differs: see docs/methods/origin.md.

    Args:
        corpus: the documents that it was made of.
        reader: the language model.
        parts: how what was read becomes a vector.
        folder: where vectors are cached by content; ``None`` keeps them in memory.
        reference: what the parts were fitted on, in words.
    """

    def __init__(
        self, corpus: Corpus, reader: Reader, parts: Parts, *, folder: Path | None = None, reference: str = ""
    ) -> None:
        self.corpus = corpus
        self.reader = reader
        self.parts = parts
        self._reference = reference
        self._dimensions = _dimensions(parts)
        self._cache = CellCache(folder, self.identity, self._dimensions)

    @classmethod
    def open(cls, folder: Path, content: Mapping[str, Any], *, device: str = "cpu") -> WordOrigin:
        """Open a folder that the recipe has made; ``content`` is that of its ``origin.json``."""
        generator = open_language_model(content["language_model"], precision=content["precision"], device=device)
        reader = Reader(
            generator,
            prompt=content["prompt"],
            own_layer=content["own_layer"],
            state_layer=content["state_layer"],
        )
        if reader.identity != content["reader"]:  # also with a release of transformers that names a setting otherwise
            logger.warning(
                f"{content['language_model']} is not the language model that {folder} was made with, or a library "
                "describes it otherwise now. If it was trained further, scores mean nothing: make the Origin again."
            )
        parts = Parts.read(folder / PARTS)
        if not np.array_equal(parts.words.tokens, reader.words) or len(parts.own.mean) != reader.width:
            raise DataError(
                f"{folder / PARTS} is of a language model with other words or another width. Make the Origin again."
            )
        return cls(
            Corpus(folder / "corpus", Shape(**content["shape"])),
            reader,
            parts,
            folder=folder / "cache",
            reference=content["reference"],
        )

    @property
    def protocol(self) -> str:
        """Everything that changes a score, in words."""
        weights = self.parts.weights
        words = self.parts.words
        shares = ", ".join(f"{name} {weights[name]:g}" for name in (OWN, STATE, WORDS) if weights[name])
        return (
            f"Origin by next words: cosine of hidden states of layer {self.reader.own_layer}, the state of layer "
            f"{self.reader.state_layer} behind the "
            f"prompt {self.reader.prompt!r}, and the positive PMI of the {words.kept_words} likeliest of "
            f"{len(words.tokens)} words in {words.components.shape[1]} dimensions ({shares}); "
            f"fitted on {self._reference}; causal language model, {self.reader.precision}, at most "
            f"{self.reader.longest} tokens of a text"
        )

    @cached_property
    def identity(self) -> str:
        """A text that is the same only for what gives the same vectors."""
        arrays = self.parts.arrays()
        return content_hash([self.reader.identity.encode(), *(arrays[name].tobytes() for name in sorted(arrays))])

    def fresh(self) -> WordOrigin:
        """Return the same with nothing cached, so that what is read together decides the last bits of a vector."""
        fresh = copy.copy(self)  # with the identity, a hash of all parts
        fresh._cache = CellCache(None, self.identity, self._dimensions)
        return fresh

    def encode(self, texts: Sequence[str]) -> Embeddings:
        """Return unit vectors, float32 ``(texts, dim)``; a dot product is the similarity.

        Raises:
            DataError: if a text is blank, or has no token.
        """
        for row, text in enumerate(texts):
            if not text.strip():
                raise DataError(f"Origin compares texts; text {row} is blank: {text!r}. Leave it out.")
        distinct = {text: index for index, text in enumerate(dict.fromkeys(texts))}
        self.reader.note_unread(list(distinct))
        vectors = self._vectors(list(distinct))
        return vectors[[distinct[text] for text in texts]]

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Return the similarity of each pair, ``(pairs,)``; raises as :meth:`encode`."""
        vectors = self.encode([text for pair in pairs for text in pair]).astype(np.float64)
        scores: Scores = np.clip(np.einsum("nd,nd->n", vectors[::2], vectors[1::2]), -1.0, 1.0)
        return scores

    def explain(self, first: str, second: str, *, top: int = 5) -> WordExplanation:
        """Return the similarity of two sentences with the words that made it, ``top`` on each side."""
        score = float(self([(first, second)])[0])
        return explain_words(self.reader, self.parts, (first, second), score, top)

    def _vectors(self, sentences: Sequence[str]) -> Embeddings:
        """Return the vectors of distinct sentences, computing only what is not cached."""
        order = self.reader.order(sentences)
        vectors = np.empty((len(order), self._dimensions), dtype=np.float32)
        with progress_bar("read", "sentence", len(order), leave=False, inner=True) as bar:
            for start in range(0, len(order), BLOCK):
                block = order[start : start + BLOCK]
                vectors[block] = self._block([sentences[int(index)] for index in block])
                bar.update(len(block))
        return vectors

    def _block(self, sentences: Sequence[str]) -> Embeddings:
        keys = content_keys(sentences)
        vectors, is_cached = self._cache.find(keys)
        missing = np.flatnonzero(~is_cached)
        if len(missing):
            vectors[missing] = self.parts.vectors(self.reader.read([sentences[int(row)] for row in missing]))
            self._cache.write(keys[missing], vectors[missing])
        return vectors


def _dimensions(parts: Parts) -> int:
    """Return the length of a sentence's vector."""
    dimensions = {
        OWN: parts.own.matrix.shape[1],
        STATE: parts.state.matrix.shape[1],
        WORDS: parts.words.components.shape[1],
    }
    return sum(dim for name, dim in dimensions.items() if parts.weights[name])
