"""An encoder in NumPy: the same vectors as torch gives in float32, without the seconds that importing torch takes."""

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
"""Approximate number of characters of a token, in Latin script."""


class Trunk(Protocol):
    """Computes the vector of a text from its tokens; ``work`` is the number of multiplications a token."""

    work: int

    def __call__(self, ids: npt.NDArray[np.int64]) -> Array:
        """Return the vector of a text, ``(dim,)``, of at least one token."""


class PooledTransformer:
    """A transformer followed by a pooling of its hidden states."""

    def __init__(self, transformer: Transformer, pooling: Pooling) -> None:
        self.work = transformer.parameters
        self._transformer = transformer
        self._pooling = pooling

    def __call__(self, ids: npt.NDArray[np.int64]) -> Array:
        """Return the vector of a text."""
        return self._pooling(self._transformer.states(ids))


class StaticMean:
    """The mean of static token vectors."""

    def __init__(self, weights: Weights, name: str) -> None:
        self.work = weights.shapes[name][1]
        self._weights = weights
        self._name = name

    def __call__(self, ids: npt.NDArray[np.int64]) -> Array:
        """Return the vector of a text."""
        mean: Array = self._weights.rows(self._name, ids).mean(axis=0)
        return mean


class NumpyEncoder(TokenEncoder):
    """An :class:`~samesense.inference.models.model.Encoder` of a folder that NumPy can compute completely.

    Every text is encoded by itself on one thread, so that its bits depend on nothing else; several texts are encoded in
    parallel. Products of so few rows are no faster on two threads, which would have to wait for each other.
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
        """Create an encoder from the parts of a folder.

        ``open_torch`` opens the same model with torch, for uses that need it. The first ``truncate_dim`` numbers of
        each vector are kept, ``None`` for all.
        """
        super().__init__(folder, description, tokenizer)
        self._trunk = trunk
        self._maps = maps
        self._open_torch = open_torch
        self._truncate_dim = truncate_dim
        self.reopen: Callable[[], NumpyEncoder] | None = None  # set by open_plain
        self._threads = thread_count(threads)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a function that opens the folder; unpickling calls it."""
        return self.reopen, ()

    @cached_property
    def sentence_transformer(self) -> SentenceTransformer:
        """The same model in torch, which is imported when this is first read."""
        return self._open_torch()

    @property
    def protocol(self) -> str:
        """Everything that changes a figure, in the words of torch's encoder in float32."""
        details = self.protocol_details("float32")
        if self.tells_tasks_apart:
            details += [f"prompt of a {task} {self.prompt_of(task)!r}" for task in PROMPTS]
        if self._truncate_dim is not None:
            details.append(f"first {self._truncate_dim} dimensions")
        return ", ".join(details)

    @property
    def identity(self) -> str:
        """The identity of the same model in torch, which must be opened for it."""
        # Loads torch, which this encoder otherwise never does.
        from samesense.encoder.saving.storage import model_identity

        return model_identity(self.sentence_transformer, "float32")

    def work(self, texts: Sequence[str]) -> int:
        """Return the approximate number of multiplications needed to encode texts."""
        longest = self.description.max_tokens
        letters = (len(text) + len(self.description.prompt) for text in texts)
        tokens = (2 + count // LETTERS_A_TOKEN for count in letters)  # 2 for the special tokens
        return self._trunk.work * sum(count if longest is None else min(count, longest) for count in tokens)

    def embed(self, encodings: list[Encoding], budget: int) -> Embeddings:
        """Return the vectors of tokenised texts; see :class:`TokenEncoder`."""
        rows = np.zeros((len(encodings), self.description.dim), dtype=np.float32)
        texts = [row for row, encoding in enumerate(encodings) if encoding.ids]  # an empty text may have no tokens
        with threadpool_limits(1), ThreadPoolExecutor(self._threads) as pool:
            rows[texts] = list(pool.map(lambda row: self._vector(encodings[row]), texts))
        return rows

    def _vector(self, encoding: Encoding) -> Array:
        vector = self._trunk(np.array(encoding.ids, dtype=np.int64))
        for apply in self._maps:
            vector = apply(vector)
        # Cut last, as the maps take whole vectors.
        return vector[: self.description.dim]
