"""Texts of different lengths one behind the other in a single row, without padding.

All that a transformer does to single tokens is done to the tokens that there are, and in bfloat16 a few more, in one
forward; attention alone is formed text by text, in groups of like length. A batch that was cut into several padded
forwards had each weight's gradient formed, cast and added up several times, that of all word embeddings among them.

The layout is that of sentence-transformers for flash attention (``cu_seq_lens_q``), which its pooling reads. The head
of a cross-encoder is given the first token of each pair.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedModel

from samesense.encoder.forward.attention import NAME, Group, in_float32
from samesense.encoder.forward.dropout import use_cheap_dropout, without_dropout
from samesense.encoder.forward.grad_cache import Features, forward

logger = logging.getLogger(__name__)

_TRIAL = ("a", "some words, more than the one before", "two or three")
"""Texts of three lengths, by whose embeddings, or scores of pairs, a model is known to take packed texts."""


def pack(features: Features, rows: Tensor, groups: Sequence[tuple[int, int]], offset: int) -> Features:
    """Return ``rows`` of padded features, which are sorted by falling length, as one row of tokens.

    Args:
        features: tensors ``(texts, tokens)`` with an ``attention_mask``; other values are kept.
        rows: numbers of texts.
        groups: first and one past the last of the rows that attend together.
        offset: number of the first position.
    """
    mask = features["attention_mask"][rows].bool()
    lengths = mask.sum(dim=1)
    ends = lengths.cumsum(0)
    starts = F.pad(ends, (1, 0))
    packed: Features = {
        key: value[rows][mask].unsqueeze(0) if isinstance(value, Tensor) else value
        for key, value in features.items()
        if key != "attention_mask"
    }
    within = torch.arange(int(ends[-1])) - starts[:-1].repeat_interleave(lengths)
    packed["position_ids"] = (within + offset).unsqueeze(0)
    packed["cu_seq_lens_q"] = starts.int()
    sizes, edges = lengths.tolist(), starts.tolist()
    packed["packing"] = [Group(sizes[a:b], edges[a]) for a, b in groups]
    return packed


def rounded(tokens: int) -> int:
    """Return a number of tokens that is one of 16 between a power of two and the next, from 32 on.

    oneDNN makes its kernels anew for each number, which takes 3 ms a step of six layers.
    """
    unit = 1 << max(0, tokens.bit_length() - 5)
    return -(-tokens // unit) * unit


def _fill(trunk: nn.Module, given: tuple[Features, ...]) -> tuple[Features, ...] | None:
    """Have a transformer under autocast read a rounded number of tokens: copies of the first follow, of no text."""
    features = given[0]
    if "packing" not in features or not torch.is_autocast_enabled("cpu"):
        return None
    total = features["input_ids"].shape[1]
    more = rounded(total) - total
    filled = {
        key: torch.cat([value, value[:, :1].expand(1, more)], dim=1)
        for key, value in features.items()
        if isinstance(value, Tensor) and value.shape == (1, total)
    }
    return {**features, **filled}, *given[1:]


def _cut(trunk: nn.Module, given: tuple[Features, ...], output: Features) -> Features:
    """Drop what :func:`_fill` has added."""
    if "packing" not in output:
        return output
    total, filled = int(output["cu_seq_lens_q"][-1]), output["input_ids"].shape[1]

    def cut(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(cut, value))
        return value[:, :total] if isinstance(value, Tensor) and value.shape[:2] == (1, filled) else value

    return output if total == filled else {key: cut(value) for key, value in output.items()}


def _exact(norm: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Have a layer norm under autocast formed in float32: in bfloat16 torch adds up its weights' gradients in bfloat16.

    Over 2,600 tokens they were wrong by a fifth to a half of their size (all-MiniLM-L6-v2, the last layer).
    """
    return (in_float32(given[0]), *given[1:]) if torch.is_autocast_enabled("cpu") else None


def _narrow(norm: nn.Module, given: tuple[Any, ...], output: Tensor) -> Tensor | None:
    """Have all that follows a layer norm in the precision of autocast, and not products alone.

    On a CPU torch leaves additions and layer norms in float32, so that each product's input and outcome is converted.
    """
    return output.to(torch.get_autocast_dtype("cpu")) if torch.is_autocast_enabled("cpu") else None


def _around_norms(model: nn.Module) -> list[RemovableHandle]:
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    return [
        hook for norm in norms for hook in (norm.register_forward_pre_hook(_exact), norm.register_forward_hook(_narrow))
    ]


def _widened(trunk: nn.Module, given: tuple[Features, ...], output: Features) -> Features:
    """Return token embeddings in float32 again, as means over tokens are formed of them."""
    if "token_embeddings" in output:
        output["token_embeddings"] = in_float32(output["token_embeddings"])
    return output


def packs(model: nn.Module) -> bool:
    """Return whether a model is taking packed texts; it may be wrapped for several processes."""
    trunk = _trunk(getattr(model, "module", model))
    return trunk is not None and trunk.model.config._attn_implementation == NAME


def _trunk(model: nn.Module) -> Transformer | None:
    first = model[0] if isinstance(model, SentenceTransformer | CrossEncoder) and len(model) else None
    return first if isinstance(first, Transformer) else None


def first_position(model: nn.Module) -> int:
    """Return the number that a model gives the first token: after that of padding, in RoBERTa and its kin."""
    for module in model.modules():
        padding = getattr(module, "padding_idx", None)
        if isinstance(padding, int) and isinstance(getattr(module, "position_embeddings", None), nn.Embedding):
            return padding + 1
    return 0


@contextmanager
def packing(model: SentenceTransformer | CrossEncoder) -> Iterator[None]:
    """Have a model on a CPU take packed texts, where they give the embeddings, or scores, of padded ones."""
    trunk = _trunk(model)
    if trunk is None or not _may_pack(trunk):
        yield
        return
    arguments = trunk.model_forward_params
    trunk.model.set_attn_implementation(NAME)
    if arguments is not None:  # None passes everything on
        trunk.model_forward_params = arguments | {"packing"}
    hooks = [trunk.register_forward_pre_hook(_fill), trunk.register_forward_hook(_cut)]
    hooks += [*_around_norms(trunk), trunk.register_forward_hook(_widened)]
    if isinstance(model, CrossEncoder):
        hooks.append(trunk.model.base_model.register_forward_hook(_first_tokens, with_kwargs=True))
    try:
        if not _agrees(model):
            logger.debug("texts are padded: this model does not take packed ones")
            trunk.model.set_attn_implementation("sdpa")
        yield
    finally:
        trunk.model.set_attn_implementation("sdpa")
        trunk.model_forward_params = arguments
        for hook in hooks:
            hook.remove()


@contextmanager
def dropped_cheaply(model: PreTrainedModel) -> Iterator[None]:
    """Have a transformer that trains on padded texts on a CPU draw its dropout cheaply, that of its attention too."""
    if model.device.type != "cpu":
        yield
        return
    use_cheap_dropout(model)
    attention = model.config._attn_implementation
    if attention == "sdpa":
        model.set_attn_implementation(NAME)
    try:
        yield
    finally:
        model.set_attn_implementation(attention)


def _first_tokens(base: Any, given: tuple[Any, ...], named: dict[str, Any], output: Any) -> Any:
    """Return what a transformer says of packed texts as if each were of its first token, which heads read."""
    if named.get("packing") is None:
        return output
    output.last_hidden_state = output.last_hidden_state[0, named["cu_seq_lens_q"][:-1].long()].unsqueeze(1)
    if getattr(base, "pooler", None) is not None:
        output.pooler_output = base.pooler(output.last_hidden_state)
    return output


def _may_pack(trunk: Transformer) -> bool:
    model = trunk.model
    return bool(
        model.device.type == "cpu"
        and getattr(model.config, "_attn_implementation", None) == "sdpa"
        and model.is_backend_compatible()
    )


@torch.no_grad()
def _agrees(model: SentenceTransformer | CrossEncoder) -> bool:
    """Return whether packed texts have the embeddings, or scores, of padded ones."""
    try:
        with without_dropout(model), torch.autocast("cpu", enabled=False):
            pairs = isinstance(model, CrossEncoder)
            features = model.preprocess([(text, _TRIAL[-1]) for text in _TRIAL] if pairs else list(_TRIAL))
            order = features["attention_mask"].sum(dim=1).argsort(descending=True)
            packed = forward(model, pack(features, order, [(0, 1), (1, len(_TRIAL))], first_position(model)))
            return torch.allclose(packed, forward(model, features)[order], rtol=1e-3, atol=1e-4)
    except (
        AttributeError,
        KeyError,
        TypeError,
        ValueError,
        IndexError,
        RuntimeError,
    ):  # NotImplementedError is a RuntimeError
        return False
