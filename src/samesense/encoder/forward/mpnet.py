"""Packed texts in MPNet, whose attention in transformers has no other implementations to choose from.

MPNet adds to each score of attention a bias that is learnt, by head and by the distance of the two tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import MPNetModel
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


class MPNetAttention:
    """The attention of an MPNet, which takes packed texts as well as padded ones from :meth:`pack` to :meth:`unpack`.

    Args:
        base: the MPNet without its head.
    """

    def __init__(self, base: MPNetModel) -> None:
        self._base: Any = base  # methods of it are replaced, which its own type does not allow

    @property
    def is_packed(self) -> bool:
        """Whether packed texts are taken at the moment."""
        return isinstance(self._base.encoder.compute_position_bias, _PositionBias)

    @property
    def can_pack(self) -> bool:
        """Whether :meth:`pack` may be called: the outer of two nested blocks packs, and ends it."""
        return not self.is_packed

    def pack(self) -> None:
        """Take packed texts."""
        bias = _PositionBias(self._base)
        self._base.forward = bias.forward
        self._base.encoder.compute_position_bias = bias
        for attention in _attentions(self._base.encoder):
            attention.forward = partial(_attend, attention)  # type: ignore[method-assign]

    def unpack(self) -> None:
        """Undo :meth:`pack`."""
        if self.is_packed:
            del self._base.forward, self._base.encoder.compute_position_bias
            for attention in _attentions(self._base.encoder):
                del attention.forward


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
