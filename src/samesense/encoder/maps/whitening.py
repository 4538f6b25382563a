"""Whitening: a linear map after which the dimensions of the embeddings are uncorrelated and have unit variance.

    S = covariance of the embeddings = U diag(s) U'      s descending
    W = the first k columns of U diag(1 / sqrt(s))       y = (x - mean) W

Source: Su et al. 2021, "Whitening Sentence Representations for Better Semantics and Faster Retrieval".
Differs: directions without variance are dropped, where the original divides by zero; mean and covariance are
    accumulated block by block, so that any number of texts fits in memory. Rows are not normalised afterwards, which
    does not change cosines.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from samesense.errors import ConfigError, ModelError
from samesense.results.shown import Shown
from samesense.types import Embeddings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Matrix = npt.NDArray[np.float64]

CUT_OFF = 1e-9
"""A direction counts as empty below this fraction of the largest variance; float32 rounding gives about 1e-11."""

BLOCK = 4096
"""Rows held in float64 at once."""


@dataclass(frozen=True, repr=False)
class Whitening(Shown):
    """A fitted whitening map."""

    mean: Matrix  # subtracted from every embedding (d,)
    matrix: Matrix  # the map (d, k), the direction of the largest variance first
    n: int  # number of embeddings it was fitted on
    empty: int  # number of the d directions without variance, which are dropped

    def __str__(self) -> str:
        inputs, outputs = self.matrix.shape
        empty = f"; {self.empty} directions had no variance" if self.empty else ""
        return f"whitening from {inputs} to {outputs} dimensions, fitted on {self.n:,} texts{empty}"

    @classmethod
    def fit(cls, embeddings: Embeddings | Iterable[Embeddings], dim: int | None = None) -> Whitening:
        """Estimate the map from embeddings of unlabelled texts.

        Args:
            embeddings: one matrix ``(n, d)``, or blocks ``(rows, d)`` of it in any sizes.
            dim: number of columns to keep, k; ``None`` keeps every direction that has variance.

        Raises:
            ConfigError: if ``dim`` is below 1 or more than there are directions with variance.
            ModelError: if there are fewer than two embeddings, all are alike, or one is not finite.
        """
        if dim is not None and dim < 1:
            raise ConfigError(f"Whitening keeps at least one dimension; received {dim}.")
        n, mean, covariance = _moments(embeddings)
        variances, directions = np.linalg.eigh(covariance)  # ascending
        variances = variances[::-1]
        directions = directions[:, ::-1]
        _check_different(variances[0], mean, n)
        rank = int((variances > CUT_OFF * variances[0]).sum())
        if dim is not None and dim > rank:
            raise ConfigError(
                f"Whitening can keep at most as many dimensions as have variance: {rank} of {len(mean)}, from {n} "
                f"embeddings; received {dim}. Keep fewer, or fit on more texts."
            )
        columns = rank if dim is None else dim
        return cls(mean, directions[:, :columns] / np.sqrt(variances[:columns]), n, len(mean) - rank)

    @classmethod
    def shrunk(cls, embeddings: Embeddings) -> Whitening:
        """Estimate the map from a matrix ``(n, d)`` that may have few rows for its dimensions.

        The covariance S is shrunk towards a multiple of the identity, (1 - a) S + a tr(S) / d I, with the a that is
        estimated to come nearest to the true covariance, so that directions of small variance are not blown up.

        Source: Ledoit and Wolf 2004, "A well-conditioned estimator for large-dimensional covariance matrices".

        Raises:
            ModelError: as :meth:`fit`.
        """
        n, mean, covariance = _moments(embeddings)
        rows = embeddings.astype(np.float64) - mean
        # The paper's S divides by n, and the covariance here by n - 1.
        scatter = covariance * ((n - 1) / n)
        level = np.trace(scatter) / len(mean)
        _check_different(level, mean, n)
        size = float((scatter**2).sum())
        distance = size - len(mean) * level**2  # squared, between S and its target
        noise = (
            float(((rows**2).sum(axis=1) ** 2).mean()) - size
        ) / n  # squared error of S as an estimate of the true covariance
        shrinkage = min(1.0, noise / distance) if distance > 0 else 1.0
        variances, directions = np.linalg.eigh((1 - shrinkage) * scatter + shrinkage * level * np.eye(len(mean)))
        return cls(mean, directions[:, ::-1] / np.sqrt(variances[::-1]), n, 0)

    @classmethod
    def centred(cls, embeddings: Embeddings) -> Whitening:
        """Return the map that only subtracts the mean of a matrix ``(n, d)``; ModelError as :meth:`fit`."""
        n, mean, _ = _moments(embeddings)
        return cls(mean, np.eye(len(mean)), n, 0)

    def apply(self, embeddings: Embeddings) -> Embeddings:
        """Return the whitened rows, float32 ``(n, k)``, computed in float64.

        Raises:
            ModelError: if the embeddings have another width than those of the fit.
        """
        rows = np.asarray(embeddings)
        if rows.ndim != 2 or rows.shape[1] != len(self.mean):
            raise ModelError(
                f"This whitening was fitted on embeddings of {len(self.mean)} dimensions; received shape {rows.shape}."
            )
        out = np.empty((len(rows), self.matrix.shape[1]), dtype=np.float32)
        for start in range(0, len(rows), BLOCK):
            out[start : start + BLOCK] = (rows[start : start + BLOCK].astype(np.float64) - self.mean) @ self.matrix
        return out


def append_whitening(model: SentenceTransformer, whitening: Whitening) -> SentenceTransformer:
    """Append the map to ``model`` as a linear layer, so that every reader of the folder applies it; return the model.

    The layer is a ``Dense`` of sentence-transformers without activation, with weight ``W'`` and bias ``-mean W``. If
    the model ends in a normalisation, another one is appended. ModelError if the model's embeddings have another width
    than those of the fit.
    """
    # Fitting is in NumPy; only a map that is put behind a model needs torch.
    import torch
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.modules import Normalize

    d, k = whitening.matrix.shape
    check_whole(model)
    if model.get_embedding_dimension() != d:
        raise ModelError(
            f"This whitening was fitted on embeddings of {d} dimensions; "
            f"the model's have {model.get_embedding_dimension()}."
        )
    layer = Dense(
        in_features=d,
        out_features=k,
        activation_function=torch.nn.Identity(),
        init_weight=torch.tensor(whitening.matrix.T, dtype=torch.float32),
        init_bias=torch.tensor(-whitening.mean @ whitening.matrix, dtype=torch.float32),
    )
    # a map breaks unit length, so a model that normalises must do it again behind the map
    unit = isinstance(model[-1], Normalize)
    model.append(layer.to(model.device))
    if unit:
        model.append(Normalize())
    return model


def check_whole(model: SentenceTransformer) -> None:
    """Raise ModelError if a model truncates its embeddings, as modules behind it would get the whole ones."""
    if model.truncate_dim is not None:
        raise ModelError(
            f"This model's vectors are cut to their first {model.truncate_dim} numbers, and what is fitted on these "
            "would be given whole ones. Take truncate_dim out of its config_sentence_transformers.json."
        )


def _check_different(variance: float, mean: Matrix, n: int) -> None:
    # Equal rows have a tiny variance by rounding, which depends on their length.
    if variance <= np.finfo(np.float32).eps ** 2 * max(1.0, float(mean @ mean)):
        raise ModelError(f"Whitening needs embeddings that differ; all {n} are alike.")


def _moments(embeddings: Embeddings | Iterable[Embeddings]) -> tuple[int, Matrix, Matrix]:
    """Return the number of rows, their mean ``(d,)`` and unbiased covariance ``(d, d)``, in one pass.

    Source: Chan, Golub and LeVeque 1979, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances".
    """
    n = 0
    mean = np.zeros(0)
    scatter = np.zeros((0, 0))
    for block in _blocks(embeddings):
        rows = block.astype(np.float64)
        if not np.isfinite(rows).all():
            bad = n + int(np.argmin(np.isfinite(rows).all(axis=1)))
            raise ModelError(f"Whitening needs finite embeddings; row {bad} holds a NaN or an infinity.")
        if n == 0:
            mean = np.zeros(rows.shape[1])
            scatter = np.zeros((rows.shape[1], rows.shape[1]))
        elif rows.shape[1] != len(mean):
            raise ModelError(f"Blocks must have one width; received {len(mean)} and {rows.shape[1]} dimensions.")
        block_mean = rows.mean(axis=0)
        gap = block_mean - mean
        # In place, as astype has made a copy of the caller's block.
        rows -= block_mean
        total = n + len(rows)
        scatter += rows.T @ rows + np.outer(gap, gap) * (n * len(rows) / total)
        mean = mean + gap * (len(rows) / total)
        n = total
    if n < 2:
        raise ModelError(f"Whitening needs at least two embeddings; received {n}. Give more texts to fit it on.")
    return n, mean, scatter / (n - 1)


def _blocks(embeddings: Embeddings | Iterable[Embeddings]) -> Iterable[npt.NDArray[Any]]:
    """Yield matrices of at most BLOCK rows, none of them empty."""
    if isinstance(embeddings, np.ndarray):
        embeddings = [embeddings]
    for block in embeddings:
        matrix = np.asarray(block)
        if matrix.ndim != 2:
            raise ModelError(f"Whitening takes matrices of one embedding a row; received shape {matrix.shape}.")
        yield from (matrix[start : start + BLOCK] for start in range(0, len(matrix), BLOCK))
