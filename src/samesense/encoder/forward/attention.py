"""Attention on a CPU by plain products: of texts that are packed one behind the other, and of padded ones with dropout.

Forward and backward are written out as one function of autograd: as single operations a layer took twice as long with
16 pairs (measured, bfloat16: 3.3 and 1.7 ms).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

from samesense.encoder.forward.dropout import LEVELS, factors, kept, scale_of

NAME = "samesense_packed"
"""Attention of models that take packed texts, as transformers knows it."""

SHORT = 128
"""Most tokens of a text whose attention is formed by plain products: on a CPU torch's fused one is slower up to there,
and with dropout always (measured, 12 heads of 32: 20 tokens 0.9 and 4.4 ms against 0.4)."""

_LEAST = 16
"""Fewest tokens of a group's width: over fewer keys torch's softmax is not vectorised (69,000 weights: 12 keys 414 us,
16 keys 40)."""


class Group:
    """Texts of like length that attend to themselves together, padded to the longest of them, or to ``_LEAST``.

    Args:
        lengths: tokens of each text.
        start: the first token among all.
    """

    def __init__(self, lengths: Sequence[int], start: int) -> None:
        self.rows, self.width = len(lengths), max(_LEAST, *lengths)
        self.tokens = slice(start, start + sum(lengths))
        self.there = torch.arange(self.width) < torch.tensor(lengths).unsqueeze(1)  # (rows, width)
        self.spots = self.there.view(-1).nonzero().view(-1)  # of each token among rows * width
        self._into: dict[tuple[int, int], Tensor] = {}  # as all layers of a model ask for the same
        self._back: dict[int, Tensor] = {}
        self._bias: dict[bool, Tensor | None] = {}

    def into(self, heads: int, times: int) -> Tensor:
        """Return which of the ``tokens * heads`` stands at each of the places ``rows * heads * times * width``."""
        if (heads, times) not in self._into:
            tokens = torch.zeros(self.rows * self.width, dtype=torch.int64)
            tokens[self.spots] = torch.arange(len(self.spots))
            head = torch.arange(heads * times) // times
            self._into[heads, times] = (tokens.view(self.rows, 1, self.width) * heads + head.view(1, -1, 1)).view(-1)
        return self._into[heads, times]

    def back(self, heads: int) -> Tensor:
        """Return at which of the places ``rows * heads * width`` each of the ``tokens * heads`` stands."""
        if heads not in self._back:
            row, within = (self.spots // self.width).unsqueeze(1), (self.spots % self.width).unsqueeze(1)
            self._back[heads] = ((row * heads + torch.arange(heads)) * self.width + within).view(-1)
        return self._back[heads]

    def bias(self, causal: bool) -> Tensor | None:
        """Return what is added to scores ``(rows, heads, width, width)``, ``None`` where all is attended."""
        if causal not in self._bias:
            attended = self.there.view(self.rows, 1, 1, self.width)
            if causal:  # padding stands behind each text, so that none of its tokens sees any
                attended = torch.ones(self.width, self.width, dtype=torch.bool).tril().view(1, 1, self.width, -1)
            self._bias[causal] = None if bool(attended.all()) else _bias_of(attended)
        return self._bias[causal]

    def take(self, whole: Tensor, times: int = 1) -> Tensor:
        """Return what is of this group among ``(tokens, heads, dim)``: ``(rows * heads * times, width, dim)``.

        Padding is the group's first token; it is not attended, and what it attends is not read.
        """
        own, (heads, dim) = whole[self.tokens], whole.shape[1:]
        if not len(own):  # texts without a token
            return whole.new_zeros(self.rows * heads * times, self.width, dim)
        return own.flatten(0, 1).index_select(0, self.into(heads, times)).view(-1, self.width, dim)

    def put(self, whole: Tensor, part: Tensor) -> None:
        """Write what is of this group, ``(rows * heads, width, dim)``, into ``(tokens, heads, dim)`` of all.

        Where those have fewer heads, several read each of them, and are added up.
        """
        heads, dim = whole.shape[1:]
        if len(part) > self.rows * heads:
            part = part.view(self.rows, heads, -1, self.width, dim).sum(dim=2)
        target = whole[self.tokens].view(-1, dim)
        torch.index_select(part.view(-1, dim), 0, self.back(heads), out=target)


def _bias_of(attended: Tensor) -> Tensor:
    """Return 0 where is attended, and elsewhere the lowest number: less than that would be infinite."""
    return torch.zeros(attended.shape).masked_fill_(~attended, torch.finfo(torch.float32).min)


def _product(a: Tensor, b: Tensor, scale: float) -> Tensor:
    return torch.baddbmm(a.new_empty(1, 1, 1), a, b, beta=0, alpha=scale)


def _attended(
    given: Sequence[Tensor], bias: Tensor | None, dropped: int, scale: float
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the outcome, the weights and which of these are kept, given query, key and value.

    All are ``(texts * heads, tokens, dim)``; ``dropped / LEVELS`` is the probability of dropout.
    """
    query, key, value = given
    scores = in_float32(_product(query, key.transpose(1, 2), scale))
    if bias is not None:
        scores.view(len(bias), -1, *scores.shape[1:]).add_(bias)
    exact = scores.softmax(dim=-1)
    weights, left = exact.to(value.dtype), kept(exact.shape, dropped) if dropped else None
    used = weights if left is None else (exact * factors(left, exact.dtype)).to(value.dtype)
    return _product(used, value, scale_of(dropped)), weights, left


def _gradients(gradient: Tensor, saved: Sequence[Any], dropped: int, scale: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of query, key and value, given that of the outcome and what the forward has saved."""
    query, key, value, weights, left = saved
    exact, dtype = in_float32(weights), gradient.dtype
    used, of_weights = weights, in_float32(_product(gradient, value.transpose(1, 2), scale_of(dropped)))
    if left is not None:
        here = factors(left, exact.dtype)
        used, of_weights = exact * here, of_weights * here
    of_value = _product(used.to(dtype).transpose(1, 2), gradient, scale_of(dropped))
    of_scores = torch._softmax_backward_data(of_weights, exact, -1, exact.dtype).to(dtype)
    return _product(of_scores, key, scale), _product(of_scores.transpose(1, 2), query, scale), of_value


def in_float32(values: Tensor) -> Tensor:
    """Return values in float32, or in float64 where they are; torch's softmax is four times faster than in bfloat16."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


class _Packed(torch.autograd.Function):
    """Attention of packed texts: ``(tokens, heads, dim)`` of query, key and value in, of the query's heads out."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, groups: Sequence[Group], causal: bool, *settings: Any
    ) -> Tensor:
        heads, own = query.shape[1], key.shape[1]
        found, saved = query.new_empty(*query.shape[:2], value.shape[2]), []
        for group in groups:
            given = [group.take(query), group.take(key, heads // own), group.take(value, heads // own)]
            outcome, weights, left = _attended(given, group.bias(causal), *settings)
            group.put(found, outcome)
            if any(ctx.needs_input_grad):
                saved += [*given, weights, left]
        found[: groups[0].tokens.start] = found[groups[-1].tokens.stop :] = 0  # of other tokens
        ctx.save_for_backward(*saved)
        ctx.groups, ctx.own, ctx.settings = groups, own, settings
        return found

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        tokens, heads = gradient.shape[:2]
        counts = zip((heads, ctx.own, ctx.own), saved[:3], strict=True)
        found = [gradient.new_empty(tokens, count, given.shape[2]) for count, given in counts]
        with torch.autocast("cpu", enabled=False):
            for at, group in enumerate(ctx.groups):
                own = group.take(gradient)
                own.view(group.rows, heads, group.width, -1).mul_(group.there.view(group.rows, 1, -1, 1))
                parts = _gradients(own, saved[5 * at : 5 * at + 5], *ctx.settings)
                for whole, part in zip(found, parts, strict=True):
                    group.put(whole, part)
        for whole in found:
            whole[: ctx.groups[0].tokens.start] = whole[ctx.groups[-1].tokens.stop :] = 0
        return *found, None, None, None, None


class _Padded(torch.autograd.Function):
    """Attention of padded texts: ``(texts, heads, width, dim)`` in and out."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, dropped: int, scale: float
    ) -> Tensor:
        given = [tensor.flatten(0, 1) for tensor in (query, key, value)]
        bias = None if mask is None else _bias_of(mask).expand(len(query), *mask.shape[1:])
        outcome, weights, left = _attended(given, bias, dropped, scale)
        ctx.save_for_backward(*given, weights, left)
        ctx.settings = dropped, scale
        return outcome.view(*query.shape[:3], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast("cpu", enabled=False):
            parts = _gradients(gradient.flatten(0, 1), ctx.saved_tensors, *ctx.settings)
        return *(part.view(*gradient.shape[:2], *part.shape[1:]) for part in parts), None, None, None


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

    Tokens behind the last text attend to nothing, and are zeros. Without ``packing`` the rows are padded
    texts, and attend as transformers has it, but for dropout on a CPU.
    """
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    dropped = round(dropout * LEVELS)
    if packing is None:
        if dropout and more.get("position_bias") is None and _is_plain(module, query, key, attention_mask, is_causal):
            own = _of_all_heads(*_in_autocast(query, key, value))
            padded: Tensor = _Padded.apply(*own, attention_mask, dropped, scale)  # type: ignore[no-untyped-call]
            return padded.transpose(1, 2).contiguous(), None
        outcome: tuple[Tensor, Tensor | None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, is_causal=is_causal, **more
        )
        return outcome
    if more.get("sliding_window") is not None or more.get("position_bias") is not None:
        raise NotImplementedError("packed texts take no windows and no biases of attention")
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    long = [] if dropout else [group for group in packing if group.width > SHORT]  # the first, since lengths fall
    columns = [tensor[0].transpose(0, 1) for tensor in _in_autocast(query, key, value)]
    rest, settings = packing[len(long) :], (causal, dropped, scale)
    if not long:
        packed: Tensor = _Packed.apply(*columns, rest, *settings)  # type: ignore[no-untyped-call]
        return packed.unsqueeze(0), None
    parts = [_fused(group, query, key, value, scale, causal) for group in long]
    if rest:
        parts.append(_Packed.apply(*columns, rest, *settings)[rest[0].tokens.start :])  # type: ignore[no-untyped-call]
    found = torch.cat(parts)
    return F.pad(found, (0, 0, 0, 0, 0, query.shape[2] - len(found))).unsqueeze(0), None


def _in_autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return tensors as autocast has products take them; a function of autograd does not see to it itself."""
    if not torch.is_autocast_enabled("cpu"):
        return tensors
    dtype = torch.get_autocast_dtype("cpu")
    return tuple(tensor if tensor.dtype == torch.float64 else tensor.to(dtype) for tensor in tensors)


def _is_plain(module: nn.Module, query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool | None) -> bool:
    """Return whether a mask says all that there is to the attention of padded texts on a CPU."""
    if query.device.type != "cpu" or len(query) != len(key):
        return False
    if mask is None:
        return not (getattr(module, "is_causal", True) if is_causal is None else is_causal)
    return mask.dtype == torch.bool


def _of_all_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Repeat keys and values where several heads of the query read one of them; all ``(rows, heads, tokens, dim)``."""
    times = query.shape[1] // key.shape[1]
    if times > 1:
        key, value = key.repeat_interleave(times, dim=1), value.repeat_interleave(times, dim=1)
    return query, key, value


def _fused(group: Group, query: Tensor, key: Tensor, value: Tensor, scale: float, causal: bool) -> Tensor:
    """Return torch's own attention of one group, ``(tokens, heads, dim)``; long texts need little memory so."""
    given = []
    for tensor in _of_all_heads(query, key, value):
        own = tensor[0, :, group.tokens].transpose(0, 1)
        room = own.new_zeros(group.rows * group.width, *own.shape[1:])
        room = room.index_copy(0, group.spots, own).view(group.rows, group.width, *own.shape[1:])
        given.append(room.transpose(1, 2).contiguous())  # products are faster so
    # padding stands behind each text, so that in a causal model none of its tokens sees any
    mask = None if causal or group.bias(causal) is None else group.there.view(group.rows, 1, 1, group.width)
    found = F.scaled_dot_product_attention(given[0], given[1], given[2], attn_mask=mask, is_causal=causal, scale=scale)
    return found.transpose(1, 2).flatten(0, 1).index_select(0, group.spots)


AttentionInterface.register(NAME, packed_attention)
AttentionMaskInterface.register(NAME, sdpa_mask)
