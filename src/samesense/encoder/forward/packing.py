"""Texts of different lengths one behind the other in a single row, without padding.

All that a transformer does to single tokens is done to exactly the tokens that there are, in one forward; attention
alone is formed text by text, in groups of like length. A batch that was cut into several padded forwards had each
weight's gradient formed, cast and added up several times, that of all word embeddings among them.

The layout is that of sentence-transformers for flash attention (``cu_seq_lens_q``), which its pooling reads. The head
of a cross-encoder is given the first token of each pair.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from torch import Tensor, nn
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from samesense.encoder.forward.dropout import cheap_dropout, use_cheap_dropout, without_dropout
from samesense.encoder.forward.grad_cache import Features, forward

logger = logging.getLogger(__name__)

NAME = "samesense_packed"
"""Attention of models that take packed texts, as transformers knows it; padded ones go through torch's as ever."""

SHORT = 128
"""Most tokens of a text whose attention is formed by plain products: on a CPU torch's fused one is slower up to there,
and with dropout always (measured, 12 heads of 32: 20 tokens 0.9 and 4.4 ms against 0.4)."""

_TRIAL = ("a", "some words, more than the one before", "two or three")
"""Texts of three lengths, by whose embeddings, or scores of pairs, a model is known to take packed texts."""


@dataclass(frozen=True)
class Group:
    """Texts of like length that attend to themselves together, padded to the longest."""

    tokens: slice
    rows: int
    width: int
    places: Tensor | None  # of each token among rows * width; None where all are of one length
    mask: Tensor | None  # (rows, 1, 1, width): true for a token


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
    packed["packing"] = [_group(sizes[a:b], edges[a], edges[b]) for a, b in groups]
    return packed


def _group(lengths: list[int], start: int, end: int) -> Group:
    rows, width = len(lengths), max(lengths)
    if rows * width == end - start:
        return Group(slice(start, end), rows, width, None, None)
    mask = torch.arange(width) < torch.tensor(lengths).unsqueeze(1)
    return Group(slice(start, end), rows, width, mask.view(-1).nonzero().view(-1), mask.view(rows, 1, 1, width))


def packed_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    packing: Sequence[Group] | None = None,
    **more: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attend within each text; tensors ``(1, heads, tokens, dim)`` in, ``(1, tokens, heads, dim)`` out.

    Without ``packing`` the rows are padded texts, and attend as transformers has it, but for dropout on a CPU.
    """
    if packing is None:
        if dropout and more.get("position_bias") is None and _is_plain(module, query, attention_mask, is_causal):
            own = _of_all_heads(query, key, value)
            scale = query.shape[-1] ** -0.5 if scaling is None else scaling
            return _by_products(*own, attention_mask, dropout, scale).transpose(1, 2).contiguous(), None
        outcome: tuple[Tensor, Tensor | None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, is_causal=is_causal, **more
        )
        return outcome
    if more.get("sliding_window") is not None or more.get("position_bias") is not None:
        raise NotImplementedError("packed texts take no windows and no biases of attention")
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    columns = [tensor[0].transpose(0, 1) for tensor in (query, key, value)]
    parts = [_attend(group, columns, dropout, scale, bool(causal)) for group in packing]
    return torch.cat(parts).unsqueeze(0), None


def _is_plain(module: nn.Module, query: Tensor, mask: Tensor | None, is_causal: bool | None) -> bool:
    """Return whether a mask says all that there is to the attention of padded texts on a CPU."""
    if query.device.type != "cpu":
        return False
    if mask is None:
        return not (getattr(module, "is_causal", True) if is_causal is None else is_causal)
    return mask.dtype == torch.bool


def _attend(group: Group, columns: Sequence[Tensor], dropout: float, scale: float, causal: bool) -> Tensor:
    query, key, value = (_padded(column[group.tokens], group) for column in columns)
    query, key, value = _of_all_heads(query, key, value)
    mask = group.mask
    if causal and group.width > 1:
        earlier = torch.ones(group.width, group.width, dtype=torch.bool).tril()
        mask = earlier if mask is None else mask & earlier
    if group.width > SHORT and not dropout:
        found = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale)
    else:
        found = _by_products(query, key, value, mask, dropout, scale)
    rows = found.transpose(1, 2).reshape(group.rows * group.width, found.shape[1], found.shape[3])
    return rows if group.places is None else rows.index_select(0, group.places)


def _of_all_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Repeat keys and values where several heads of the query read one of them; all ``(rows, heads, tokens, dim)``."""
    times = query.shape[1] // key.shape[1]
    if times > 1:
        key, value = key.repeat_interleave(times, dim=1), value.repeat_interleave(times, dim=1)
    return query, key, value


def _by_products(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropout: float, scale: float
) -> Tensor:
    """Attention by plain products and a softmax, its weights dropped cheaply; ``mask`` is true for what is attended."""
    scores = (query * scale) @ key.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    weights = scores.softmax(dim=-1).to(value.dtype)
    return (cheap_dropout(weights, dropout) if dropout else weights) @ value


def _padded(tokens: Tensor, group: Group) -> Tensor:
    """Return ``(rows, heads, width, dim)`` of tokens ``(tokens, heads, dim)``, contiguous: products are faster so."""
    if group.places is not None:
        room = tokens.new_zeros(group.rows * group.width, *tokens.shape[1:])
        tokens = room.index_copy(0, group.places, tokens)
    return tokens.reshape(group.rows, group.width, *tokens.shape[1:]).transpose(1, 2).contiguous()


AttentionInterface.register(NAME, packed_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)


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
    hook = None
    if isinstance(model, CrossEncoder):
        hook = trunk.model.base_model.register_forward_hook(_first_tokens, with_kwargs=True)
    try:
        if not _agrees(model):
            logger.debug("texts are padded: this model does not take packed ones")
            trunk.model.set_attn_implementation("sdpa")
        yield
    finally:
        trunk.model.set_attn_implementation("sdpa")
        trunk.model_forward_params = arguments
        if hook is not None:
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
        with without_dropout(model):
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
