"""A sequence-to-sequence transformer with embeddings of each sentence's offset in its window."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor, nn

from samesense.context.generator.base import Size


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """Size of a model.

    Sentences further than ``reach`` from the centre share one position; ``max_tokens`` counts the end mark.
    """

    vocabulary: int
    width: int
    heads: int
    layers: int
    feedforward: int
    max_tokens: int = 64
    reach: int = 8
    dropout: float = 0.1

    @classmethod
    def of(cls, size: Size, vocabulary: int, *, max_tokens: int = 64, dropout: float = 0.1) -> Architecture:
        """Return the architecture of a named size; ``base`` and ``large`` are those of Vaswani et al. 2017, Table 3."""
        width, heads, layers, feedforward = SIZES[size]
        return cls(
            vocabulary=vocabulary,
            width=width,
            heads=heads,
            layers=layers,
            feedforward=feedforward,
            max_tokens=max_tokens,
            dropout=dropout,
        )


SIZES: dict[Size, tuple[int, int, int, int]] = {
    "tiny": (128, 4, 2, 512),
    "small": (256, 4, 3, 1024),
    "base": (512, 8, 6, 2048),
    "large": (1024, 16, 6, 4096),
}
"""Width, heads, layers and feed-forward width by name."""


class Seq2Seq(nn.Module):
    """Encodes rows of tokens, and decodes targets that attend to them.

    A token is embedded as the sum of its word, its position in its sentence, and the offset of its sentence in the
    window: 0 for the centre, -1 for the sentence before, 1 for the one after. A decoder input has the position and
    offset of the token to be *predicted*, which tells the model which sentence it writes.

    Source: Vaswani et al. 2017, "Attention Is All You Need"; Sun et al. 2022 (TACL), section 4.1, for the sums.
    Differs: layer norms precede each sublayer (pre-norm), which is less sensitive to the warm-up; the embeddings are
        learned and shared by encoder, decoder and output.
    """

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.vocabulary, shape.width)
        # the names of these two tables are keys of saved weights
        self.places = nn.Embedding(shape.max_tokens, shape.width)
        self.sentences = nn.Embedding(2 * shape.reach + 1, shape.width)
        self.dropout = nn.Dropout(shape.dropout)
        layer = nn.TransformerEncoderLayer(
            shape.width, shape.heads, shape.feedforward, shape.dropout, "gelu", batch_first=True, norm_first=True
        )
        # Nested tensors do not work with pre-norm layers, and torch would warn.
        self.encoder = nn.TransformerEncoder(layer, shape.layers, nn.LayerNorm(shape.width), enable_nested_tensor=False)
        self.decoder = nn.ModuleList(_DecoderLayer(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        nn.init.normal_(self.words.weight, std=shape.width**-0.5)  # unit length as input and unit scores as output
        for embedding in (self.places, self.sentences):
            nn.init.normal_(embedding.weight, std=0.5)

    def embed(self, tokens: Tensor, positions: Tensor, offsets: Tensor) -> Tensor:
        """Return the embeddings of tokens ``(rows, length)`` as ``(rows, length, width)``."""
        reach = self.shape.reach
        summed = (
            math.sqrt(self.shape.width) * self.words(tokens)
            + self.places(positions)
            + self.sentences(offsets.clamp(-reach, reach) + reach)
        )
        embedded: Tensor = self.dropout(summed)
        return embedded

    def encode(self, tokens: Tensor, positions: Tensor, offsets: Tensor) -> Tensor:
        """Return the states of rows of tokens, ``(rows, length, width)``; token 0 is padding."""
        inputs = self.embed(tokens, positions, offsets)
        states: Tensor = self.encoder(inputs, src_key_padding_mask=tokens == 0)
        return states

    def decode(self, tokens: Tensor, positions: Tensor, offsets: Tensor, memory: Tensor, absent: Tensor) -> Tensor:
        """Return the states from which targets are predicted, ``(targets, length, width)``.

        ``tokens``, ``positions`` and ``offsets`` are ``(targets, length)``: the start mark, then the target without its
        last token, with position and offset of the token to be predicted. ``memory`` is ``(groups, source, width)``;
        each group serves the next ``targets / groups`` targets. ``absent`` ``(groups, source)`` is True for padding.
        """
        states = self.embed(tokens, positions, offsets)
        for layer in self.decoder:
            states = layer(states, memory, absent)
        normed: Tensor = self.norm(states)
        return normed

    def logits(self, states: Tensor) -> Tensor:
        """Return the logits over the vocabulary, ``(..., vocabulary)``."""
        return nn.functional.linear(states, self.words.weight)


class _DecoderLayer(nn.Module):
    """A pre-norm decoder layer in which several targets can share one memory.

    The targets of a group are concatenated as queries of the cross-attention, so that keys and values of the memory are
    computed once per group, not once per target.
    """

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.itself = _Attention(shape)
        self.across = _Attention(shape)
        self.inner = nn.Linear(shape.width, shape.feedforward)
        self.outer = nn.Linear(shape.feedforward, shape.width)
        self.norms = nn.ModuleList(nn.LayerNorm(shape.width) for _ in range(3))
        self.dropout = nn.Dropout(shape.dropout)

    def forward(self, states: Tensor, memory: Tensor, absent: Tensor) -> Tensor:
        """Return the next states; shapes as in :meth:`Seq2Seq.decode`."""
        inputs = self.norms[0](states)
        states = states + self.dropout(self.itself(inputs, inputs, None))
        queries = self.norms[1](states).reshape(len(memory), -1, states.shape[-1])
        states = states + self.dropout(self.across(queries, memory, absent).reshape(states.shape))
        inside = self.dropout(nn.functional.gelu(self.inner(self.norms[2](states))))
        following: Tensor = states + self.dropout(self.outer(inside))
        return following


class _Attention(nn.Module):
    """Attention by torch's fused kernel, which ``nn.MultiheadAttention`` does not use in evaluation on a CPU."""

    def __init__(self, shape: Architecture) -> None:
        super().__init__()
        self.heads = shape.heads
        self.rate = shape.dropout
        self.query = nn.Linear(shape.width, shape.width)
        self.key_value = nn.Linear(shape.width, 2 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)

    def forward(self, queries: Tensor, memory: Tensor, absent: Tensor | None) -> Tensor:
        """Return the output for each query, ``(rows, length, width)``; self-attention is causal.

        ``absent`` ``(rows, source)`` is True where the memory is padding; ``None`` for self-attention.
        """
        projections = (self.query(queries), *self.key_value(memory).chunk(2, dim=-1))
        query, key, value = (states.unflatten(-1, (self.heads, -1)).transpose(1, 2) for states in projections)
        attended = nn.functional.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=None if absent is None else ~absent[:, None, None, :],
            dropout_p=self.rate if self.training else 0.0,
            is_causal=absent is None,
        )
        mixed: Tensor = self.out(attended.transpose(1, 2).flatten(2))
        return mixed
