"""Attention on a CPU by plain matrix products, for packed texts and for padded texts with dropout.

Forward and backward are written out as one autograd function: as separate operations a layer took twice as long with
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

from samesense.encoder.forward.dropout import LEVELS, factors, keep_mask, scale_of

NAME = "samesense_packed"
"""Name under which transformers knows this attention."""

SHORT = 128
"""Longest text, in tokens, whose attention uses plain products. On a CPU torch's fused attention is slower up to this
length, and at any length with dropout (measured, 12 heads of 32: 20 tokens 0.9 and 4.4 ms against 0.4)."""

_LEAST = 16
"""Smallest width of a group, in tokens: over fewer keys torch's softmax is not vectorised (69,000 weights: 12 keys
414 us, 16 keys 40)."""


class Group:
    """Texts of similar length whose attention is computed together, padded to the longest of them or to ``_LEAST``.

    Args:
        lengths: tokens of each text.
        start: position of the group's first token among all packed tokens.
    """

    def __init__(self, lengths: Sequence[int], start: int) -> None:
        self.rows = len(lengths)
        self.width = max(_LEAST, *lengths)
        self.tokens = slice(start, start + sum(lengths))
        self.mask = torch.arange(self.width) < torch.tensor(lengths).unsqueeze(1)  # (rows, width)
        self.positions = self.mask.view(-1).nonzero().view(-1)  # of the tokens among rows * width
        self._gather_index: dict[tuple[int, int], Tensor] = {}  # cached, as all layers of a model need the same
        self._scatter_index: dict[int, Tensor] = {}
        self._bias: dict[bool, Tensor | None] = {}

    def gather_index(self, heads: int, times: int) -> Tensor:
        """Return, for each padded position ``rows * heads * times * width``, the index among ``tokens * heads``."""
        if (heads, times) not in self._gather_index:
            tokens = torch.zeros(self.rows * self.width, dtype=torch.int64)
            tokens[self.positions] = torch.arange(len(self.positions))
            head = torch.arange(heads * times) // times
            self._gather_index[heads, times] = (
                tokens.view(self.rows, 1, self.width) * heads + head.view(1, -1, 1)
            ).view(-1)
        return self._gather_index[heads, times]

    def scatter_index(self, heads: int) -> Tensor:
        """Return, for each of the ``tokens * heads``, its padded position among ``rows * heads * width``."""
        if heads not in self._scatter_index:
            row = (self.positions // self.width).unsqueeze(1)
            within = (self.positions % self.width).unsqueeze(1)
            self._scatter_index[heads] = ((row * heads + torch.arange(heads)) * self.width + within).view(-1)
        return self._scatter_index[heads]

    def bias(self, causal: bool) -> Tensor | None:
        """Return the bias to add to the scores ``(rows, heads, width, width)``; ``None`` if nothing is masked."""
        if causal not in self._bias:
            attended = self.mask.view(self.rows, 1, 1, self.width)
            if causal:  # padding follows each text, so the causal mask already hides it
                attended = torch.ones(self.width, self.width, dtype=torch.bool).tril().view(1, 1, self.width, -1)
            self._bias[causal] = None if bool(attended.all()) else _mask_bias(attended)
        return self._bias[causal]

    def cut(self, relative: Any) -> Any:
        """Return the part of ``(heads, width, width)`` that is for this group; ``None`` for ``None``."""
        if relative is None:
            return None
        return relative[:, : self.width, : self.width]

    def gather(self, all_rows: Tensor, times: int = 1) -> Tensor:
        """Return this group's rows of ``(tokens, heads, dim)``, padded: ``(rows * heads * times, width, dim)``.

        Padding repeats the group's first token; it is masked as a key, and its output is never read.
        """
        tokens = all_rows[self.tokens]
        heads, dim = all_rows.shape[1:]
        if not len(tokens):  # all texts of the group are empty
            return all_rows.new_zeros(self.rows * heads * times, self.width, dim)
        return tokens.flatten(0, 1).index_select(0, self.gather_index(heads, times)).view(-1, self.width, dim)

    def scatter(self, all_rows: Tensor, values: Tensor) -> None:
        """Write this group's values, ``(rows * heads, width, dim)``, into ``all_rows``, ``(tokens, heads, dim)``.

        If ``all_rows`` has fewer heads (grouped-query attention), the values of query heads that share one are summed.
        """
        heads, dim = all_rows.shape[1:]
        if len(values) > self.rows * heads:
            values = values.view(self.rows, heads, -1, self.width, dim).sum(dim=2)
        # writes into ``all_rows`` through the view, without a copy
        target = all_rows[self.tokens].view(-1, dim)
        torch.index_select(values.view(-1, dim), 0, self.scatter_index(heads), out=target)


def _mask_bias(attended: Tensor) -> Tensor:
    """Return 0 where attention is allowed and the lowest finite float32 elsewhere."""
    # Not minus infinity, which would make NaN of a row that is masked whole.
    return torch.zeros(attended.shape).masked_fill_(~attended, torch.finfo(torch.float32).min)


def _product(a: Tensor, b: Tensor, scale: float) -> Tensor:
    # With beta 0 torch does not read the first argument, so it need not be initialised.
    return torch.baddbmm(a.new_empty(1, 1, 1), a, b, beta=0, alpha=scale)


def _attend(
    inputs: Sequence[Tensor], bias: Tensor | None, relative: Tensor | None, dropped: int, scale: float
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return output, attention weights and dropout mask for ``inputs``: query, key and value.

    All are ``(texts * heads, tokens, dim)``; ``dropped / LEVELS`` is the probability of dropout. ``bias`` masks tokens,
    and ``relative``, ``(heads, tokens, tokens)``, is that of relative positions.
    """
    query, key, value = inputs
    scores = in_float32(_product(query, key.transpose(1, 2), scale))
    if relative is not None:  # one for each head, for all texts
        scores.view(-1, *relative.shape).add_(relative)
    if bias is not None:  # one bias per text, for all of its heads
        scores.view(len(bias), -1, *scores.shape[1:]).add_(bias)
    probabilities = scores.softmax(dim=-1)
    weights = probabilities.to(value.dtype)  # saved for the backward, which applies the mask again
    mask = keep_mask(probabilities.shape, dropped) if dropped else None
    dropped_weights = weights
    if mask is not None:
        dropped_weights = (probabilities * factors(mask, probabilities.dtype)).to(value.dtype)
    # The scale of dropout goes into the product, which saves a pass over the weights.
    return _product(dropped_weights, value, scale_of(dropped)), weights, mask


def _backward(
    gradient: Tensor, saved: Sequence[Any], dropped: int, scale: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Return the gradients of query, key, value and scores from the output's and the tensors the forward saved."""
    query, key, value, weights, mask = saved
    probabilities = in_float32(weights)
    dtype = gradient.dtype
    dropped_weights = weights
    weight_gradient = in_float32(_product(gradient, value.transpose(1, 2), scale_of(dropped)))
    if mask is not None:
        keep = factors(mask, probabilities.dtype)
        dropped_weights = probabilities * keep
        weight_gradient = weight_gradient * keep
    value_gradient = _product(dropped_weights.to(dtype).transpose(1, 2), gradient, scale_of(dropped))
    # The operator that autograd uses itself; the weights are given, so no softmax is repeated.
    of_scores = torch._softmax_backward_data(weight_gradient, probabilities, -1, probabilities.dtype)
    score_gradient = of_scores.to(dtype)
    query_gradient = _product(score_gradient, key, scale)
    key_gradient = _product(score_gradient.transpose(1, 2), query, scale)
    return query_gradient, key_gradient, value_gradient, of_scores


def in_float32(values: Tensor) -> Tensor:
    """Return values in float32 (float64 stays), in which torch's softmax is four times faster than in bfloat16."""
    return values.to(torch.promote_types(values.dtype, torch.float32))


class _Packed(torch.autograd.Function):
    """Attention of packed texts: query, key and value are ``(tokens, heads, dim)``, the output like the query.

    ``relative``, ``(heads, width, width)``, is added to the scores.
    """

    @staticmethod
    def forward(
        ctx: Any,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        relative: Tensor | None,
        groups: Sequence[Group],
        causal: bool,
        *settings: Any,
    ) -> Tensor:
        heads = query.shape[1]
        key_heads = key.shape[1]
        attended = query.new_empty(*query.shape[:2], value.shape[2])
        saved = []
        for group in groups:
            inputs = [group.gather(query), *(group.gather(tensor, heads // key_heads) for tensor in (key, value))]
            output, weights, mask = _attend(inputs, group.bias(causal), group.cut(relative), *settings)
            group.scatter(attended, output)
            if any(ctx.needs_input_grad):  # five tensors per group, see backward
                saved += [*inputs, weights, mask]
        # tokens before and behind the groups belong to no text of them
        attended[: groups[0].tokens.start] = 0
        attended[groups[-1].tokens.stop :] = 0
        ctx.save_for_backward(*saved)
        ctx.groups = groups
        ctx.key_heads = key_heads
        ctx.width = 0 if relative is None else relative.shape[-1]
        ctx.settings = settings
        return attended

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        tokens, heads = gradient.shape[:2]
        counts = zip((heads, ctx.key_heads, ctx.key_heads), saved[:3], strict=True)
        gradients = [gradient.new_empty(tokens, count, projection.shape[2]) for count, projection in counts]
        relative_gradient = None
        if ctx.needs_input_grad[3]:
            relative_gradient = in_float32(gradient.new_zeros(heads, ctx.width, ctx.width))
        with torch.autocast("cpu", enabled=False):
            for index, group in enumerate(ctx.groups):
                group_gradient = group.gather(gradient)
                # padding repeats the first token's gradient, which must not count twice
                group_gradient.view(group.rows, heads, group.width, -1).mul_(group.mask.view(group.rows, 1, -1, 1))
                *group_gradients, of_scores = _backward(group_gradient, saved[5 * index : 5 * index + 5], *ctx.settings)
                for tensor_gradient, values in zip(gradients, group_gradients, strict=True):
                    group.scatter(tensor_gradient, values)
                if relative_gradient is not None:
                    group.cut(relative_gradient).add_(of_scores.view(group.rows, heads, group.width, -1).sum(dim=0))
        for tensor_gradient in gradients:
            tensor_gradient[: ctx.groups[0].tokens.start] = 0
            tensor_gradient[ctx.groups[-1].tokens.stop :] = 0
        return *gradients, relative_gradient, None, None, None, None


class _Padded(torch.autograd.Function):
    """Attention of padded texts: ``(texts, heads, width, dim)`` in and out."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, dropped: int, scale: float
    ) -> Tensor:
        inputs = [tensor.flatten(0, 1) for tensor in (query, key, value)]
        bias = None
        if attention_mask is not None:
            bias = _mask_bias(attention_mask).expand(len(query), *attention_mask.shape[1:])
        output, weights, dropout_mask = _attend(inputs, bias, None, dropped, scale)
        ctx.save_for_backward(*inputs, weights, dropout_mask)
        ctx.settings = (dropped, scale)
        return output.view(*query.shape[:3], -1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast("cpu", enabled=False):
            *gradients, _ = _backward(gradient.flatten(0, 1), ctx.saved_tensors, *ctx.settings)
        return *(values.view(*gradient.shape[:2], *values.shape[1:]) for values in gradients), None, None, None


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
    **options: Any,
) -> tuple[Tensor, Tensor | None]:
    """Attend within each text; tensors ``(1, heads, tokens, dim)`` in, ``(1, tokens, heads, dim)`` out.

    The output of tokens behind the last text is zero. Without ``packing`` the rows are padded texts; they use the
    attention of transformers, except that dropout on a CPU uses :class:`_Padded`.
    """
    scale = scaling
    if scale is None:
        scale = query.shape[-1] ** -0.5
    has_bias = options.get("position_bias") is not None
    if packing is not None:
        if options.get("sliding_window") is not None or has_bias:
            raise NotImplementedError("packed texts take no windows and no biases of attention")
        causal = _is_causal(module, is_causal)
        return attend_packed((query, key, value), packing, causal, dropout, scale).unsqueeze(0), None
    # On a CPU torch's fused attention is slow with dropout.
    if dropout and not has_bias and _is_plain(module, query, key, attention_mask, is_causal):
        inputs = _repeat_heads(*_cast_for_autocast(query, key, value))
        dropped = round(dropout * LEVELS)
        padded: Tensor = _Padded.apply(*inputs, attention_mask, dropped, scale)  # type: ignore[no-untyped-call]
        return padded.transpose(1, 2).contiguous(), None
    output: tuple[Tensor, Tensor | None] = sdpa_attention_forward(
        module, query, key, value, attention_mask, dropout=dropout, scaling=scaling, is_causal=is_causal, **options
    )
    return output


def attend_packed(
    inputs: tuple[Tensor, Tensor, Tensor],
    groups: Sequence[Group],
    causal: bool,
    dropout: float,
    scale: float,
    relative: Tensor | None = None,
) -> Tensor:
    """Return the attention of packed texts ``(tokens, heads, dim)``; ``inputs`` are query, key and value.

    ``relative``, ``(heads, width, width)`` of the widest group, is added to the scores.
    """
    # Groups are sorted by descending length, so the long ones come first.
    long_groups = [] if dropout else [group for group in groups if group.width > SHORT]
    short_groups = groups[len(long_groups) :]
    columns = [tensor[0].transpose(0, 1) for tensor in _cast_for_autocast(*inputs)]
    short: Tensor | None = None
    if short_groups:
        settings = (round(dropout * LEVELS), scale)
        short = _Packed.apply(*columns, relative, short_groups, causal, *settings)  # type: ignore[no-untyped-call]
        if not long_groups:
            return short
    blocks = [_attend_fused(group, *inputs, group.cut(relative), scale, causal) for group in long_groups]
    if short is not None:
        blocks.append(short[short_groups[0].tokens.start :])
    attended = torch.cat(blocks)
    return F.pad(attended, (0, 0, 0, 0, 0, inputs[0].shape[2] - len(attended)))


def _cast_for_autocast(*tensors: Tensor) -> tuple[Tensor, ...]:
    """Return tensors in the dtype in which autocast runs matrix products; autograd functions are not cast by it."""
    if not torch.is_autocast_enabled("cpu"):
        return tensors
    dtype = torch.get_autocast_dtype("cpu")
    return tuple(tensor if tensor.dtype == torch.float64 else tensor.to(dtype) for tensor in tensors)


def _is_plain(module: nn.Module, query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool | None) -> bool:
    """Return whether padded texts on a CPU attend by a boolean mask alone, or without any mask."""
    if query.device.type != "cpu" or len(query) != len(key):
        return False
    if mask is None:
        return not _is_causal(module, is_causal)
    return mask.dtype == torch.bool


def _is_causal(module: nn.Module, is_causal: bool | None) -> bool:
    """Return whether a token attends to earlier ones alone; modules that do not say so do, as in transformers."""
    if is_causal is None:
        return bool(getattr(module, "is_causal", True))
    return bool(is_causal)


def _repeat_heads(query: Tensor, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Repeat the heads of keys and values that several query heads share; all are ``(rows, heads, tokens, dim)``."""
    times = query.shape[1] // key.shape[1]
    if times > 1:
        key = key.repeat_interleave(times, dim=1)
        value = value.repeat_interleave(times, dim=1)
    return query, key, value


def _attend_fused(
    group: Group, query: Tensor, key: Tensor, value: Tensor, relative: Tensor | None, scale: float, causal: bool
) -> Tensor:
    """Return torch's fused attention of one group, ``(tokens, heads, dim)``, which saves memory on long texts."""
    padded = []
    for tensor in _repeat_heads(query, key, value):
        tokens = tensor[0, :, group.tokens].transpose(0, 1)
        padded_tokens = tokens.new_zeros(group.rows * group.width, *tokens.shape[1:])
        padded_tokens = padded_tokens.index_copy(0, group.positions, tokens).view(
            group.rows, group.width, *tokens.shape[1:]
        )
        padded.append(padded_tokens.transpose(1, 2).contiguous())  # makes products faster
    # padding follows each text, so a causal mask already hides it
    mask: Tensor | None = None
    if relative is not None:
        bias = group.bias(causal)
        mask = (relative if bias is None else relative + bias).to(query.dtype)
        causal = False  # the bias masks later tokens
    elif not causal and group.bias(causal) is not None:
        mask = group.mask.view(group.rows, 1, 1, group.width)
    attended = F.scaled_dot_product_attention(
        padded[0], padded[1], padded[2], attn_mask=mask, is_causal=causal, scale=scale
    )
    return attended.transpose(1, 2).flatten(0, 1).index_select(0, group.positions)


AttentionInterface.register(NAME, packed_attention)
# Padded texts still go through sdpa, and so need its masks.
AttentionMaskInterface.register(NAME, sdpa_mask)
