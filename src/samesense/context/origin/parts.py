"""Parts of a sentence's vector: whitened hidden states, and the words that are likely to follow.

Each part is of unit length, and the vector of a sentence is the parts side by side, so that its cosines are weighted
means of those of the parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from samesense.context.origin.reader import Readings
from samesense.errors import DataError, ModelError
from samesense.failures import DAMAGED
from samesense.files import replacing
from samesense.types import Embeddings, Floats, Indices

if TYPE_CHECKING:
    from scipy import sparse

OWN = "own"
"""Name of the part of a sentence's own hidden states."""

STATE = "state"
"""Name of the part of the hidden state at the end of the prompt."""

WORDS = "words"
"""Name of the part of the next words."""


@dataclass(frozen=True)
class WhitenedPart:
    """Hidden states of a sentence, less their mean and whitened."""

    mean: Floats  # (width,)
    matrix: Floats  # (width, dim)

    def apply(self, states: Embeddings) -> Floats:
        """Return unit rows ``(n, dim)``; ModelError if a sentence is exactly the mean."""
        rows = (states.astype(np.float64) - self.mean) @ self.matrix
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if not (lengths > 0).all():
            raise ModelError("The hidden states of a sentence are exactly the mean, so that they have no direction.")
        unit: Floats = rows / lengths
        return unit


@dataclass(frozen=True)
class WordPart:
    """The words that follow a sentence more often than usual, by positive pointwise mutual information (PPMI).

    A word has max(0, log p(word | sentence) - log p(word)), where p(word) is the mean over reference sentences. The
    ``kept_words`` of a sentence that have most of it are a sparse row, which a truncated singular value decomposition
    of the reference makes dense.

    Source: Levy and Goldberg 2014, "Neural Word Embedding as Implicit Matrix Factorization", sections 3.3 and 5.
    """

    tokens: Indices  # of each word, (words,)
    log_rates: npt.NDArray[np.float32]  # log p(word), (words,)
    components: npt.NDArray[np.float32]  # what makes a sparse row dense, (words, dim)
    kept_words: int  # words of a sentence

    @classmethod
    def fit(cls, tokens: Indices, log_probs: Embeddings, *, kept_words: int, dim: int, seed: int) -> WordPart:
        """Estimate what is usual, and the decomposition, from reference sentences ``(n, words)``."""
        # Fitting alone needs scikit-learn, which takes a second to load.
        from sklearn.decomposition import TruncatedSVD

        # The logarithm of the mean probability, computed among logarithms.
        usual = np.logaddexp.reduce(log_probs.astype(np.float64), axis=0) - math.log(len(log_probs))
        without = cls(tokens, usual.astype(np.float32), np.zeros((len(tokens), 0), dtype=np.float32), kept_words)
        rows = _unit_rows(without.rows(log_probs))
        svd = TruncatedSVD(min(dim, len(log_probs) - 1, len(tokens)), random_state=seed).fit(rows)
        return cls(tokens, without.log_rates, svd.components_.T.astype(np.float32), kept_words)

    def rows(self, log_probs: Embeddings) -> sparse.csr_matrix:
        """Return the PPMI of the words that are kept of each sentence, ``(n, words)``."""
        from scipy import sparse

        values = np.maximum(log_probs - self.log_rates, 0)
        count = min(self.kept_words, values.shape[1])
        # Sorted back, as the order that argpartition leaves is arbitrary.
        columns = np.sort(np.argpartition(values, -count, axis=1)[:, -count:], axis=1)
        chosen = np.take_along_axis(values, columns, axis=1)
        starts = np.arange(0, chosen.size + 1, count)
        rows = sparse.csr_matrix((chosen.ravel(), columns.ravel(), starts), shape=values.shape)
        # Where few words are likelier than usual, some of those that are kept have a PPMI of 0.
        rows.eliminate_zeros()
        return rows

    def apply(self, log_probs: Embeddings) -> Floats:
        """Return dense unit rows ``(n, dim)``; of a sentence without any such word, zeros."""
        dense = (_unit_rows(self.rows(log_probs)) @ self.components).astype(np.float64)
        unit: Floats = dense / np.maximum(np.linalg.norm(dense, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return unit


@dataclass(frozen=True)
class Parts:
    """All parts of a sentence's vector, and how much each counts.

    ``weights`` are shares that sum to 1, by the name of the part; a part of weight 0 is left out.
    """

    own: WhitenedPart
    state: WhitenedPart
    words: WordPart
    weights: Mapping[str, float]

    def numbers(self, readings: Readings) -> dict[str, Floats]:
        """Return unit rows of each part that counts, ``(n, dim)``."""
        rows: dict[str, Floats] = {}
        if self.weights[OWN]:
            rows[OWN] = self.own.apply(readings.own)
        if self.weights[STATE]:
            rows[STATE] = self.state.apply(readings.states)
        if self.weights[WORDS]:
            rows[WORDS] = self.words.apply(readings.log_probs)
        return rows

    def vectors(self, readings: Readings) -> Embeddings:
        """Return unit vectors, float32 ``(n, sum of dims)``; a cosine is the weighted mean of the parts' cosines."""
        numbers = self.numbers(readings)
        # The root, because a product of two such vectors has the factor twice.
        joined = np.concatenate([math.sqrt(self.weights[name]) * rows for name, rows in numbers.items()], axis=1)
        lengths = np.linalg.norm(joined, axis=1, keepdims=True)
        if not (lengths > 0).all():
            raise ModelError("After a sentence no word is more likely than usual, and words alone count.")
        unit: Embeddings = (joined / lengths).astype(np.float32)
        return unit

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return all numbers by name."""
        arrays: dict[str, npt.NDArray[Any]] = {}
        for name, part in ((OWN, self.own), (STATE, self.state)):
            arrays |= {f"{name}.mean": part.mean, f"{name}.matrix": part.matrix}
        words = self.words
        arrays |= {
            "words.tokens": words.tokens,
            "words.log_rates": words.log_rates,
            "words.components": words.components,
            "words.kept_words": np.array(words.kept_words),
        }
        return arrays | {f"{name}.weight": np.array(weight) for name, weight in self.weights.items()}

    def write(self, path: Path) -> None:
        """Write them as one file."""
        with replacing(path) as beside, beside.open("wb") as sink:
            np.savez(sink, allow_pickle=False, **self.arrays())

    @classmethod
    def read(cls, path: Path) -> Parts:
        """Read what :meth:`write` wrote; DataError if it is missing or damaged."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                own, state = (WhitenedPart(arrays[f"{name}.mean"], arrays[f"{name}.matrix"]) for name in (OWN, STATE))
                words = WordPart(
                    arrays["words.tokens"],
                    arrays["words.log_rates"],
                    arrays["words.components"],
                    int(arrays["words.kept_words"]),
                )
                weights = {name: float(arrays[f"{name}.weight"]) for name in (OWN, STATE, WORDS)}
                return cls(own, state, words, weights)
        except DAMAGED as error:
            raise DataError(f"{path} holds no whole parts of an Origin ({error}). Make the Origin again.") from error


def _unit_rows(rows: sparse.csr_matrix) -> sparse.csr_matrix:
    """Return sparse rows of unit length; a row of zeros stays one."""
    from scipy import sparse

    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    inverse = 1 / np.maximum(lengths, np.finfo(np.float32).tiny)
    return sparse.diags(inverse).astype(rows.dtype) @ rows
