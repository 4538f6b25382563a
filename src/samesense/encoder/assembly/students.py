"""Students for distillation: a teacher with fewer layers, a static model of its tokens, or any smaller encoder."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding, WeightedLayerPooling
from tokenizers import Tokenizer

from samesense.encoder.assembly.build import build, set_pooling
from samesense.encoder.assembly.card_data import offline_card_data
from samesense.encoder.assembly.pooling import freeze_layer_weights, layer_pooling
from samesense.encoder.assembly.vocabulary import fast_tokenizer
from samesense.encoder.cosine import unit
from samesense.encoder.forward.grad_cache import forward
from samesense.encoder.forward.routes import refuse_routes
from samesense.encoder.layers import layer_stack
from samesense.errors import ConfigError, ModelError
from samesense.types import Embeddings, First, PoolingName

Spacing = Literal["even", "first"]
"""Which layers of a teacher its student keeps: evenly spaced ones, including first and last, or the first ones."""

_MADE_OF_TEACHER = re.compile(r"(?P<kind>layers|static)(?::(?P<number>.*))?")
_NO_MODEL = re.compile(r"(vectors|words):.*|.*\+whiten(:\d+)?")


def is_model(teacher: str) -> bool:
    """Return whether a teacher's name is that of a model, and not a file of vectors or a model with a map."""
    return _NO_MODEL.fullmatch(teacher) is None


def is_made_from_teacher(student: str) -> bool:
    """Return whether a student is made from its teacher, rather than named as a model."""
    return _MADE_OF_TEACHER.fullmatch(student) is not None


def make_student(
    student: str,
    teacher: str,
    texts: Sequence[str],
    *,
    spacing: Spacing = "even",
    pooling: PoolingName | None = None,
    first: First = "layer",
    teacher_pooling: PoolingName | None = None,
    device: str | None = None,
) -> SentenceTransformer:
    """Return a start point for distillation.

    ``layers:N`` and ``static`` (``static:DIM``) are made from the teacher; a static student weights tokens by their
    counts in ``texts``. Anything else is a folder or hub name. ``layers:N`` without a ``pooling`` takes
    ``teacher_pooling``. ConfigError if the name is malformed, or asks for more than the teacher has; ModelError if a
    model cannot be read, or no student can be made from it.
    """
    match = _MADE_OF_TEACHER.fullmatch(student)
    if match is None:
        return _without_routes(build(student, pooling=pooling, first=first, device=device))
    size = _parse_number(student, match["number"])
    if not is_model(teacher):
        raise ConfigError(
            f"The student {student} is made from the first teacher, which must be a model then; received {teacher}. "
            "Name a model first, or a small encoder as the student."
        )
    if match["kind"] == "static":
        if pooling is not None:
            raise ConfigError(f"A static student takes the mean of its tokens. Leave out pooling {pooling}.")
        return static_student(_without_routes(build(teacher, pooling=teacher_pooling, device=device)), texts, size)
    if size is None:
        raise ConfigError("layers takes the number of layers to keep, as in layers:3; received none.")
    keep_layers = spaced_layers if spacing == "even" else first_layers
    return keep_layers(
        _without_routes(build(teacher, pooling=pooling or teacher_pooling, first=first, device=device)), size
    )


def _without_routes(model: SentenceTransformer) -> SentenceTransformer:
    refuse_routes(model, "Distillation")
    return model


def _parse_number(student: str, text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"A student is named layers:3, static, static:256, or by a model; received {student!r}.")
    return int(text)


def first_layers(model: SentenceTransformer, layers: int) -> SentenceTransformer:
    """Keep the first layers of the model's transformer, at least 1, in place, and return the model.

    Modules behind the layers (a final norm, the pooling) stay; ``first-last`` and ``last-2`` use the new first and last
    layers. The result is a start point for training, not a good embedding by itself. ConfigError if the model has
    fewer layers; ModelError if it has no single stack of layers, or a pooling with other layer weights.
    """
    return _keep_layers(model, layers, range(layers))


def spaced_layers(model: SentenceTransformer, layers: int) -> SentenceTransformer:
    """Keep evenly spaced layers, including the first and the last, in place, and return the model.

    Arguments, result and errors are those of :func:`first_layers`; 1 keeps the first.

    Source: Sanh et al. 2019 (DistilBERT), who start a student from every other layer of its teacher.
    Differs: the last layer is always kept, at any depth.
    """
    config: Any = getattr(getattr(model[0], "model", None), "config", None)
    last = getattr(config, "num_hidden_layers", 1) - 1
    gaps = max(1, layers - 1)
    # Rounded in whole numbers, since Python's round takes halves to the even neighbour.
    return _keep_layers(model, layers, [(position * last + gaps // 2) // gaps for position in range(layers)])


def _keep_layers(model: SentenceTransformer, layers: int, positions: Sequence[int]) -> SentenceTransformer:
    """Keep the layers at these ascending positions, and renumber them."""
    trunk: Any = getattr(model[0], "model", None)
    config: Any = getattr(trunk, "config", None)
    depth = getattr(config, "num_hidden_layers", None)
    if trunk is None or not isinstance(depth, int):
        raise ModelError(f"Layers can be cut from transformers only; this model begins with {type(model[0]).__name__}.")
    pooling = layer_pooling(model)
    if pooling is None and any(isinstance(module, WeightedLayerPooling) for module in model):
        raise ModelError(
            "The pooling of this model weighs its layers in a way of its own, which fewer layers cannot have. Choose "
            "another pooling for the student, such as mean."
        )
    if not 1 <= layers <= depth:
        raise ConfigError(f"layers must lie between 1 and {depth}, the depth of this model; received {layers}.")
    stack = layer_stack(trunk, depth)
    module: Any
    # from the last to the first, so that the remaining positions stay valid
    for position in sorted(set(range(depth)) - set(positions), reverse=True):
        del stack[position]
    for position, layer in enumerate(stack):
        for module in layer.modules():
            if hasattr(module, "layer_idx"):  # a decoder finds its layer's cache by it
                module.layer_idx = position
    config.num_hidden_layers = layers
    # Models that mix full and sliding attention list the kind of each layer.
    if getattr(config, "layer_types", None):
        config.layer_types = [config.layer_types[position] for position in positions]
    if pooling is not None:  # its weights have one entry per layer
        set_pooling(model, *pooling)
        freeze_layer_weights(model)
    return model


COMMON = 1e-3
"""Frequency at which a token has half the weight of a very rare one."""

BLOCK_TOKENS = 512
"""Tokens embedded in one forward."""


def static_student(teacher: SentenceTransformer, texts: Sequence[str], dim: int | None) -> SentenceTransformer:
    """Return a static model with the teacher's tokenizer; its token vectors are the teacher's embeddings of the tokens.

    The vectors are centred, projected onto their first ``dim`` principal axes, and weighted by the rarity of each token
    in ``texts``. It is meant to be trained further; see :mod:`samesense.losses.distillation`.

    Raises:
        ConfigError: if the width is not between 1 and the teacher's.
        ModelError: if the teacher has no fast tokenizer, or gives no vector.

    Source: Tulkens and van Dongen 2024 (Model2Vec), for vectors of single tokens and their principal axes; Arora et al.
        2017, for the weight a / (a + share of the token).
    Differs: frequencies are counted in ``texts``; Model2Vec estimates them from the order of the vocabulary.
    """
    width = teacher.get_embedding_dimension() or 0
    if dim is not None and not 1 <= dim <= width:
        raise ConfigError(f"A static student is at most as wide as its teacher, 1 to {width}; received {dim}.")
    tokenizer = _bare_tokenizer(teacher)
    vectors = _on_principal_axes(_token_vectors(teacher, tokenizer.get_vocab_size()), dim or width)
    frequencies = _token_frequencies(tokenizer, texts, len(vectors))
    vectors *= (COMMON / (COMMON + frequencies))[:, None].astype(np.float32)
    modules = [StaticEmbedding(tokenizer, embedding_weights=vectors)]
    return SentenceTransformer(modules=modules, device=teacher.device, model_card_data=offline_card_data())


def _bare_tokenizer(teacher: SentenceTransformer) -> Tokenizer:
    """Return a copy of the teacher's tokenizer that neither pads nor cuts."""
    tokenizer = Tokenizer.from_str(fast_tokenizer(teacher, "A static student").to_str())
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _token_vectors(teacher: SentenceTransformer, tokens: int) -> Embeddings:
    """Return the teacher's embedding of each single token, with the special tokens that it puts around any text."""
    if isinstance(teacher[0], StaticEmbedding):
        weights: Embeddings = teacher[0].embedding.weight.detach().float().cpu().numpy().copy()
        return weights
    # find the special tokens that the tokenizer puts around any text
    encoding = teacher.tokenizer("a", return_special_tokens_mask=True)
    is_special = np.array(encoding["special_tokens_mask"], dtype=bool)
    ids = np.array(encoding["input_ids"])
    text_positions = np.flatnonzero(~is_special)
    prefix = ids[: text_positions[0]]
    suffix = ids[text_positions[-1] + 1 :]
    blocks = []
    teacher.eval()
    with torch.inference_mode():
        for start in range(0, tokens, BLOCK_TOKENS):
            block = range(start, min(tokens, start + BLOCK_TOKENS))
            rows = torch.from_numpy(np.stack([np.concatenate([prefix, [token], suffix]) for token in block]))
            features = {
                "input_ids": rows.to(teacher.device),
                "attention_mask": torch.ones_like(rows).to(teacher.device),
            }
            blocks.append(forward(teacher, features).float().cpu().numpy())
    vectors: Embeddings = np.concatenate(blocks)
    if not np.isfinite(vectors).all():
        raise ModelError("The teacher gives vectors that are not finite to single tokens. Take another teacher first.")
    return vectors


def _on_principal_axes(vectors: Embeddings, dim: int) -> Embeddings:
    """Normalise and centre the vectors, and return their projections onto the first principal axes."""
    rows = unit(vectors)
    centred = (rows - rows.mean(axis=0)).astype(np.float64)
    _, axes = np.linalg.eigh(centred.T @ centred)  # by ascending variance
    projected: Embeddings = (centred @ axes[:, ::-1][:, :dim]).astype(np.float32)
    return projected


def _token_frequencies(tokenizer: Tokenizer, texts: Sequence[str], tokens: int) -> npt.NDArray[np.float64]:
    """Return the relative frequency of each token in the texts, ``(tokens,)``."""
    counts = np.zeros(tokens, dtype=np.float64)
    for start in range(0, len(texts), 4096):
        for encoding in tokenizer.encode_batch(list(texts[start : start + 4096]), add_special_tokens=False):
            # An indexed addition would count a token that repeats within a text only once.
            np.add.at(counts, encoding.ids, 1)
    frequencies: npt.NDArray[np.float64] = counts / max(1.0, counts.sum())
    return frequencies
