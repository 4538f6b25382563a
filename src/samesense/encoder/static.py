"""Static-embedding students: one vector a token, read off a teacher; a sentence is the mean of its tokens' vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from tokenizers import Tokenizer

from samesense.encoder.grad_cache import forward
from samesense.encoder.vocabulary import fast_tokenizer
from samesense.errors import ConfigError, ModelError
from samesense.types import Embeddings

COMMON = 1e-3
"""A token of this share of all tokens has half the weight of a rare one."""

TOKENS = 512
"""Tokens asked for in one forward."""


def static_student(teacher: SentenceTransformer, texts: Sequence[str], dim: int | None) -> SentenceTransformer:
    """Return a static model with the teacher's tokenizer, whose token vectors are the teacher's of each token alone.

    The vectors are centred, turned to their principal axes, cut to ``dim`` of these, and weighted by how rare a token
    is among ``texts``. Training makes it good; see :mod:`samesense.training.losses.distillation`.

    Raises:
        ConfigError: if the width is not between 1 and the teacher's.
        ModelError: if the teacher has no fast tokenizer, or gives no vector.

    Source: Tulkens and van Dongen 2024 (Model2Vec), for vectors of single tokens and their principal axes; Arora et al.
        2017, for the weight a / (a + share of the token).
    Differs: shares are counted in ``texts``, where Model2Vec guesses them from the order of the vocabulary.
    """
    width = teacher.get_embedding_dimension() or 0
    if dim is not None and not 1 <= dim <= width:
        raise ConfigError(f"A static student is at most as wide as its teacher, 1 to {width}; received {dim}.")
    tokenizer = _own_tokenizer(teacher)
    vectors = _principal(_token_vectors(teacher, tokenizer.get_vocab_size()), dim or width)
    shares = _shares(tokenizer, texts, len(vectors))
    vectors *= (COMMON / (COMMON + shares))[:, None].astype(np.float32)
    return SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=vectors)], device=teacher.device)


def _own_tokenizer(teacher: SentenceTransformer) -> Tokenizer:
    """Return a copy of the teacher's tokenizer that neither pads nor cuts."""
    tokenizer = Tokenizer.from_str(fast_tokenizer(teacher, "A static student").to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _token_vectors(teacher: SentenceTransformer, tokens: int) -> Embeddings:
    """Return the teacher's embedding of each token between the marks that it puts around any text."""
    if isinstance(teacher[0], StaticEmbedding):
        known: Embeddings = teacher[0].embedding.weight.detach().float().cpu().numpy().copy()
        return known
    marked = teacher.tokenizer("a", return_special_tokens_mask=True)
    marks = np.array(marked["special_tokens_mask"], dtype=bool)
    ids = np.array(marked["input_ids"])
    inside = np.flatnonzero(~marks)
    before, after = ids[: inside[0]], ids[inside[-1] + 1 :]
    found = []
    teacher.eval()
    with torch.inference_mode():
        for start in range(0, tokens, TOKENS):
            block = range(start, min(tokens, start + TOKENS))
            rows = torch.from_numpy(np.stack([np.concatenate([before, [token], after]) for token in block]))
            features = {
                "input_ids": rows.to(teacher.device),
                "attention_mask": torch.ones_like(rows).to(teacher.device),
            }
            found.append(forward(teacher, features).float().cpu().numpy())
    vectors: Embeddings = np.concatenate(found)
    if not np.isfinite(vectors).all():
        raise ModelError("The teacher gives vectors that are not finite to single tokens. Take another teacher first.")
    return vectors


def _principal(vectors: Embeddings, dim: int) -> Embeddings:
    """Return the vectors of unit length, centred, on their first principal axes."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    centred = (unit - unit.mean(axis=0)).astype(np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)  # rising
    turned: Embeddings = (centred @ axes[:, ::-1][:, :dim]).astype(np.float32)
    return turned


def _shares(tokenizer: Tokenizer, texts: Sequence[str], tokens: int) -> npt.NDArray[np.float64]:
    """Return the share of each token among all tokens of the texts, ``(tokens,)``."""
    counts = np.zeros(tokens, dtype=np.float64)
    for start in range(0, len(texts), 4096):
        for encoding in tokenizer.encode_batch(list(texts[start : start + 4096]), add_special_tokens=False):
            np.add.at(counts, encoding.ids, 1)
    shares: npt.NDArray[np.float64] = counts / max(1.0, counts.sum())
    return shares
