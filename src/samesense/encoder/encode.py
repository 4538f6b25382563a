"""Text in, embeddings out: each distinct text once, little padding, rows in the order they came."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from samesense.encoder.precision import autocast, inference_precision
from samesense.errors import ModelError
from samesense.types import Embeddings, Encode, Precision

BATCH_CHARACTERS = 4096
"""Characters of one forward, padding included: about 1,000 tokens of English (measured on CPU)."""


def encode(
    model: SentenceTransformer,
    texts: Sequence[str],
    *,
    precision: Precision = "auto",
    normalize: bool = False,
    batch_characters: int = BATCH_CHARACTERS,
    on_progress: Callable[[int], None] | None = None,
) -> Embeddings:
    """Return the embeddings of ``texts``, float32 ``(texts, dim)``, row *i* belonging to text *i*.

    Args:
        model: the encoder; its own maximum length, prompt and pooling apply.
        texts: any number of strings; equal ones are computed once.
        precision: ``"float32"``, ``"bfloat16"``, or ``"auto"``: bfloat16 where the processor computes in it.
        normalize: scale every row to unit length.
        batch_characters: characters of one forward, padding included; changes speed and memory, not the order.
        on_progress: called with the number of texts that have just been finished.

    Raises:
        ModelError: if a text is not a string.
    """
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            raise ModelError(f"Only strings can be encoded; text {row} is {text!r} of type {type(text).__name__}.")
    rows_of: dict[str, list[int]] = {}
    for row, text in enumerate(texts):
        rows_of.setdefault(text, []).append(row)
    out = np.zeros((len(texts), model.get_embedding_dimension() or 0), dtype=np.float32)
    prompt = model.prompts.get(model.default_prompt_name) if model.default_prompt_name else None
    training = model.training
    model.eval()
    try:
        with torch.inference_mode(), autocast(model.device, inference_precision(precision, model.device)):
            for batch in length_batches(list(rows_of), batch_characters):
                features = model.preprocess(batch, prompt=prompt)
                features = {k: v.to(model.device) if isinstance(v, torch.Tensor) else v for k, v in features.items()}
                embeddings = model(features)["sentence_embedding"].float()
                if normalize:
                    embeddings = torch.nn.functional.normalize(embeddings, dim=-1)
                finished = 0
                for text, row in zip(batch, embeddings.cpu().numpy(), strict=True):
                    out[rows_of[text]] = row
                    finished += len(rows_of[text])
                if on_progress is not None:
                    on_progress(finished)
    finally:
        model.train(training)
    return out


def length_batches(texts: Sequence[str], batch_characters: int) -> Iterator[list[str]]:
    """Yield the texts from the longest to the shortest, in batches of about equal length and bounded size."""
    ordered = sorted(texts, key=len, reverse=True)
    start = 0
    while start < len(ordered):
        rows = max(1, batch_characters // max(1, len(ordered[start])))
        yield ordered[start : start + rows]
        start += rows


def as_encode(model: SentenceTransformer, *, precision: Precision = "auto") -> Encode:
    """Return ``model`` as the :data:`~samesense.types.Encode` function that evaluation takes."""

    def run(texts: Sequence[str]) -> Embeddings:
        return encode(model, texts, precision=precision)

    return run
