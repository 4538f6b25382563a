"""Packed texts in MPNet, whose attention in transformers has no other implementations to choose from.

MPNet adds to each score of attention a bias that is learnt, by head and by the distance of the two tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple, TypeGuard

import torch
from torch import Tensor, nn
from transformers import MPNetModel, PreTrainedModel
from transformers.models.mpnet.modeling_mpnet import MPNetSelfAttention

from samesense.encoder.forward.attention import Group, attend_packed


class _PackedBias(NamedTuple):
    """What the encoder hands to its layers for packed texts, in place of the bias of padded ones."""

    values: Tensor  # (heads, width, width), of the widest group
    groups: Sequence[Group]


class _PositionBias:
    """Replaces ``compute_position_bias`` of a model's encoder, which is called once a forward.

    It also replaces the forward of the model, which does not hand the groups on to its encoder.
    """

    def __init__(self, model: Any) -> None:
        self._compute = model.encoder.compute_position_bias
        self._forward = model.forward
        self._groups: Sequence[Group] | None = None

    def forward(self, *inputs: Any, packing: Sequence[Group] | None = None, **options: Any) -> Any:
        self._groups = packing
        return self._forward(*inputs, **options)

    def __call__(self, states: Tensor) -> Tensor | _PackedBias:
        if self._groups is None:
            padded: Tensor = self._compute(states)
            return padded
        width = max(group.width for group in self._groups)
        # only the shape and the device of the argument are read
        values = self._compute(torch.empty(1, width, 0, device=states.device))
        return _PackedBias(values[0], self._groups)


def is_mpnet(model: nn.Module) -> TypeGuard[PreTrainedModel]:
    """Return whether a transformer is an MPNet, perhaps with a head."""
    return isinstance(model, PreTrainedModel) and isinstance(model.base_model, MPNetModel)


def takes_packed(model: PreTrainedModel) -> bool:
    """Return whether the attention of an MPNet takes packed texts at the moment."""
    return isinstance(_base(model).encoder.compute_position_bias, _PositionBias)


def use_packed_attention(model: PreTrainedModel) -> None:
    """Let an MPNet take packed texts as well as padded ones, until :func:`use_padded_attention`."""
    base = _base(model)
    bias = _PositionBias(base)
    base.forward = bias.forward
    base.encoder.compute_position_bias = bias
    for attention in _attentions(base.encoder):
        attention.forward = partial(_attend, attention)  # type: ignore[method-assign]


def use_padded_attention(model: PreTrainedModel) -> None:
    """Undo :func:`use_packed_attention`."""
    if not takes_packed(model):
        return
    base = _base(model)
    del base.forward, base.encoder.compute_position_bias
    for attention in _attentions(base.encoder):
        del attention.forward


def _base(model: PreTrainedModel) -> Any:
    """Return the MPNet without its head; methods of it are replaced, which its own type does not allow."""
    return model.base_model


def _attentions(encoder: nn.Module) -> list[MPNetSelfAttention]:
    return [module for module in encoder.modules() if isinstance(module, MPNetSelfAttention)]


def _attend(
    attention: MPNetSelfAttention,
    hidden_states: Tensor,
    attention_mask: Tensor | None = None,
    position_bias: Tensor | _PackedBias | None = None,
    **options: Any,
) -> tuple[Tensor, ...]:
    """Return what ``MPNetSelfAttention.forward`` returns, for packed texts too."""
    if not isinstance(position_bias, _PackedBias):
        padded: tuple[Tensor, ...] = MPNetSelfAttention.forward(  # type: ignore[no-untyped-call]
            attention, hidden_states, attention_mask, position_bias, **options
        )
        return padded
    shape = (*hidden_states.shape[:-1], attention.num_attention_heads, attention.attention_head_size)
    query, key, value = (
        projection(hidden_states).view(shape).transpose(1, 2) for projection in (attention.q, attention.k, attention.v)
    )
    attended = attend_packed(
        (query, key, value),
        position_bias.groups,
        causal=False,
        dropout=attention.dropout.p if attention.training else 0.0,
        scale=attention.attention_head_size**-0.5,
        relative=position_bias.values,
    )
    return (attention.o(attended.flatten(1)).unsqueeze(0),)
