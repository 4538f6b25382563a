"""A sentence-transformers model as what computes embeddings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from sentence_transformers import SentenceTransformer

from samesense.encoder.assembly.pooling import describe_pooling
from samesense.encoder.each_once import each_once
from samesense.encoder.encode import encode
from samesense.encoder.forward.batching import tokenised
from samesense.encoder.forward.dropout import without_dropout
from samesense.encoder.forward.precision import autocast, inference_precision
from samesense.encoder.forward.reading import Watch, reading_of
from samesense.encoder.saving.storage import model_identity
from samesense.encoder.unread import note
from samesense.encoder.windows import Reading
from samesense.execution.threads import torch_threads
from samesense.types import Embeddings, Precision


class TorchEncoder:
    """An :class:`~samesense.inference.models.model.Encoder` by torch, ``torch-float32`` or ``torch-bfloat16``."""

    def __init__(
        self,
        model: SentenceTransformer,
        precision: Precision = "auto",
        *,
        deterministic: bool = False,
        threads: int | None = None,
    ) -> None:
        """Take a model, whose own maximum length, prompt and pooling apply.

        ``precision`` ``"auto"`` is bfloat16 where the device computes in it; ``deterministic`` computes every text
        alone, so that its bits depend on nothing else; ``threads`` compute, as many as before for ``None``.
        """
        self.sentence_transformer = model
        self._precision = inference_precision(precision, model.device)
        self._deterministic, self._threads = deterministic, threads
        self.name = f"torch-{self._precision}"

    @property
    def protocol(self) -> str:
        """In words, everything that changes a figure."""
        model = self.sentence_transformer
        longest = model.max_seq_length
        parts = [
            "cosine",
            f"{describe_pooling(model)} pooling",
            self._precision,
            f"at most {longest} tokens" if isinstance(longest, int) else "inputs of any length",
        ]
        if model.default_prompt_name is not None:
            parts.append(f"prompt {model.prompts[model.default_prompt_name]!r}")
        if model.truncate_dim is not None:
            parts.append(f"first {model.truncate_dim} dimensions")
        return ", ".join(parts)

    @property
    def identity(self) -> str:
        """See :func:`~samesense.encoder.saving.storage.model_identity`."""
        return model_identity(self.sentence_transformer, self._precision)

    @property
    def reading(self) -> Reading:
        """How the model reads texts."""
        return reading_of(self.sentence_transformer)

    def encode(
        self, texts: Sequence[str], *, normalize: bool = False, on_progress: Callable[[int], None] | None = None
    ) -> Embeddings:
        """Return the embeddings; see :func:`samesense.encoder.encode.encode`."""
        run = _encode_alone if self._deterministic else encode
        with torch_threads(1 if self._deterministic else self._threads):
            return run(
                self.sentence_transformer,
                texts,
                precision=self._precision,
                normalize=normalize,
                on_progress=on_progress,
            )


def _encode_alone(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    precision: Precision = "auto",
    normalize: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> Embeddings:
    """Return the embeddings of ``texts`` as :func:`samesense.encoder.encode.encode` does, with bits of the text alone.

    Every text is a batch of its own: how products are cut and summed depends on the shape of a batch, and so do the
    last bits. They depend on the number of threads too, which must be one.
    """
    watch = Watch(model)
    whole = _is_read(model, "")  # with special tokens every text is read

    def embed(block: list[str]) -> Embeddings:
        watch.read(block)
        rows = np.zeros((len(block), model.get_embedding_dimension() or 0), dtype=np.float32)
        read = [at for at, text in enumerate(block) if whole or _is_read(model, text)]
        with autocast(model.device, inference_precision(precision, model.device)):
            if read:
                rows[read] = model.encode([block[at] for at in read], batch_size=1, show_progress_bar=False)
        return rows

    with without_dropout(model):
        rows = each_once(
            texts, embed, model.get_embedding_dimension() or 0, normalize=normalize, on_progress=on_progress
        )
    note(watch.unread, model)
    return rows


def _is_read(model: SentenceTransformer, text: str) -> bool:
    """Return whether a tokenizer makes a token of a text; one without special tokens makes none of an empty one."""
    mask = tokenised(model, [text]).get("attention_mask")
    return mask is None or bool(mask.any())
