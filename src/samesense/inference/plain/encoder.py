"""An encoder by NumPy: the same vectors as torch gives in float32, without the seconds in which torch is imported."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from samesense.encoder.names import PROMPTS
from samesense.inference.onnx.format import Description
from samesense.inference.onnx.token_encoder import TokenEncoder, thread_count
from samesense.inference.plain.modules import Map, Pooling
from samesense.inference.plain.transformer import Transformer
from samesense.inference.plain.weights import Array, Weights
from samesense.types import Embeddings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Encoding, Tokenizer

LETTERS_A_TOKEN = 4
"""Characters of a text for each token, as text in the Latin script has them."""


class Trunk(Protocol):
    """What makes a vector of tokens; ``work`` is the numbers that are multiplied for each."""

    work: int

    def __call__(self, ids: npt.NDArray[np.int64]) -> Array:
        """Return the vector of a text, ``(dim,)``, of at least one token."""


class PooledTransformer:
    """A transformer and the pooling of its states."""

    def __init__(self, transformer: Transformer, pooling: Pooling) -> None:
        self.work = transformer.parameters
        self._transformer = transformer
        self._pooling = pooling

    def __call__(self, ids: npt.NDArray[np.int64]) -> Array:
        """Return the vector of a text."""
        return self._pooling(self._transformer.states(ids))


class StaticMean:
    """The mean of the vectors of tokens, of a table."""

    def __init__(self, weights: Weights, name: str) -> None:
        self.work = weights.shapes[name][1]
        self._weights = weights
        self._name = name

    def __call__(self, ids: npt.NDArray[np.int64]) -> Array:
        """Return the vector of a text."""
        mean: Array = self._weights.rows(self._name, ids).mean(axis=0)
        return mean


class NumpyEncoder(TokenEncoder):
    """An :class:`~samesense.inference.models.model.Encoder` of a folder whose parts are all known here.

    Every text is computed alone and on one thread, so that its bits depend on nothing else; several texts are computed
    at the same time. A product of so few rows is no faster on two threads, and waits where others compute.
    """

    name = "numpy"
    damage = "Save the model again."

    def __init__(
        self,
        folder: Path,
        description: Description,
        tokenizer: Tokenizer,
        trunk: Trunk,
        maps: Sequence[Map],
        *,
        open_torch: Callable[[], SentenceTransformer],
        truncate_dim: int | None = None,
        threads: int | None = None,
    ) -> None:
        """Take what a folder holds; ``open_torch`` opens it by torch, for what only torch can do.

        ``truncate_dim`` numbers of each vector are kept, ``None`` for all.
        """
        super().__init__(folder, description, tokenizer)
        self._trunk = trunk
        self._maps = maps
        self._open_torch = open_torch
        self._truncate_dim = truncate_dim
        self.reopen: Callable[[], NumpyEncoder] | None = None  # set where the folder was opened
        self._threads = thread_count(threads)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle how the folder is opened, which it is again where it is unpickled."""
        return self.reopen, ()

    @cached_property
    def sentence_transformer(self) -> SentenceTransformer:
        """The same model by torch, which is imported when this is read."""
        return self._open_torch()

    @property
    def protocol(self) -> str:
        """In words, everything that changes a figure; those of torch in float32."""
        described = self.description
        longest = "inputs of any length" if described.max_tokens is None else f"at most {described.max_tokens} tokens"
        details = ["cosine", f"{described.pooling} pooling", "float32", longest]
        if described.prompt:
            details.append(f"prompt {described.prompt!r}")
        if self.tells_tasks_apart:
            details += [f"prompt of a {task} {self.prompt_of(task)!r}" for task in PROMPTS]
        if self._truncate_dim is not None:
            details.append(f"first {self._truncate_dim} dimensions")
        return ", ".join(details)

    @property
    def identity(self) -> str:
        """That of the same model by torch, which is opened for it."""
        from samesense.encoder.saving.storage import model_identity

        return model_identity(self.sentence_transformer, "float32")

    def work(self, texts: Sequence[str]) -> int:
        """Return about how many products of two numbers the vectors of texts take."""
        longest = self.description.max_tokens
        letters = (len(text) + len(self.description.prompt) for text in texts)
        tokens = (2 + count // LETTERS_A_TOKEN for count in letters)
        return self._trunk.work * sum(count if longest is None else min(count, longest) for count in tokens)

    def embed(self, encodings: list[Encoding], budget: int) -> Embeddings:
        """Return the vectors of tokenised texts; see :class:`TokenEncoder`."""
        rows = np.zeros((len(encodings), self.description.dim), dtype=np.float32)
        texts = [row for row, encoding in enumerate(encodings) if encoding.ids]  # of an empty one there may be none
        with threadpool_limits(1), ThreadPoolExecutor(self._threads) as pool:
            rows[texts] = list(pool.map(lambda row: self._vector(encodings[row]), texts))
        return rows

    def _vector(self, encoding: Encoding) -> Array:
        vector = self._trunk(np.array(encoding.ids, dtype=np.int64))
        for apply in self._maps:
            vector = apply(vector)
        return vector[: self.description.dim]
