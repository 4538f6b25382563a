"""The forward pass of BERT and similar transformers, one text at a time, so that there is no padding and no mask.

    embeddings  E[token] + P[position] (+ T[type]), normalised
    layer       h = norm(x + Wo attention(x)); x = norm(h + W2 act(W1 h))

Source: Devlin et al. 2019, "BERT"; Song et al. 2020, "MPNet", for its relative positions.
"""

from __future__ import annotations

from math import log, prod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from samesense.inference.plain.activations import OF_TRANSFORMERS, layer_norm, softmax
from samesense.inference.plain.kinds import KINDS, Kind
from samesense.inference.plain.weights import Array, NotPlainError, Weights

Ids = npt.NDArray[np.int64]

UNUSED = ("pooler.dense.weight", "pooler.dense.bias", "embeddings.position_ids")
"""Tensors that hidden states do not depend on."""

PADDING = 1
"""Id of the padding token, in models whose positions start after it."""

FURTHEST = 128
"""Distance of two tokens from which MPNet uses a single bucket."""


class Linear(NamedTuple):
    """A linear layer, or the weight and bias of a layer norm."""

    weight: Array
    bias: Array

    def __call__(self, rows: Array) -> Array:
        """Return the mapped rows, ``(rows, out)``."""
        mapped: Array = rows @ self.weight.T + self.bias
        return mapped


class Layer(NamedTuple):
    """The linear layers and norms of one layer, in the order of :attr:`Kind.names`."""

    query: Linear
    key: Linear
    value: Linear
    out: Linear
    attention_norm: Linear
    inner: Linear
    outer: Linear
    norm: Linear


class Transformer:
    """A transformer: computes the hidden states of a text from its token ids."""

    def __init__(self, config: dict[str, Any], weights: Weights) -> None:
        """Read a configuration of transformers and the weights; NotPlainError for an unsupported model."""
        self.kind = _kind(config)
        kind = self.kind
        self.width, self.depth, self.heads = (_count(config, key) for key in (kind.width, kind.depth, kind.heads))
        inner = _count(config, kind.inner)
        if self.width % self.heads:
            raise NotPlainError("its heads do not divide its width")
        self._epsilon = 1e-12
        if kind.epsilon is not None:
            # 1e-12 is the default of BERT's configuration in transformers.
            self._epsilon = float(config.get(kind.epsilon, 1e-12))
        self._activation = OF_TRANSFORMERS[config.get(kind.activation, "gelu")]
        self._names = _Names(weights, kind.prefix)
        shapes = self._shapes(inner)
        self._names.check(shapes)
        self.rows = self._names.shape("embeddings.word_embeddings.weight")[0]
        # Rows before the first position belong to none.
        self.positions = self._names.shape("embeddings.position_embeddings.weight")[0] - self._first_position
        # Embeddings are looked up, and cost no multiplications.
        inner_names = [name for name in shapes if "embeddings" not in name]
        self.parameters = sum(prod(self._names.shape(name)) for name in inner_names)
        self._layers = [self._layer(number) for number in range(self.depth)]
        self._norm = self._linear("embeddings.LayerNorm")
        self._positions = self._names["embeddings.position_embeddings.weight"]
        self._types = self._names["embeddings.token_type_embeddings.weight"] if kind.types else None
        self._distances = self._names[_DISTANCES] if config["model_type"] == "mpnet" else None

    @property
    def _first_position(self) -> int:
        if not self.kind.counts_from_padding:
            return 0
        return PADDING + 1

    def _shapes(self, inner: int) -> dict[str, tuple[int | None, ...]]:
        """Return the expected shape of each tensor; ``None`` for any number of rows."""
        width = self.width
        table: tuple[int | None, ...] = (None, width)
        shapes: dict[str, tuple[int | None, ...]] = {
            "embeddings.word_embeddings.weight": table,
            "embeddings.position_embeddings.weight": table,
            "embeddings.LayerNorm.weight": (width,),
            "embeddings.LayerNorm.bias": (width,),
        }
        if self.kind.types:
            shapes["embeddings.token_type_embeddings.weight"] = table
        if self.kind is KINDS["mpnet"]:
            shapes[_DISTANCES] = (32, self.heads)
        square = (width, width)
        norm = (width,)
        matrices = (square, square, square, square, norm, (inner, width), (width, inner), norm)
        for number in range(self.depth):
            for name, shape in zip(self.kind.names, matrices, strict=True):
                shapes[f"{self.kind.layers}.{number}.{name}.weight"] = shape
                shapes[f"{self.kind.layers}.{number}.{name}.bias"] = shape[:1]
        return shapes

    def _linear(self, name: str) -> Linear:
        return Linear(self._names[f"{name}.weight"], self._names[f"{name}.bias"])

    def _layer(self, number: int) -> Layer:
        return Layer(*(self._linear(f"{self.kind.layers}.{number}.{name}") for name in self.kind.names))

    def states(self, ids: Ids) -> list[Array]:
        """Return the hidden states of a text: the embeddings and the output of each layer, all ``(tokens, width)``."""
        states = [self._embeddings(ids)]
        bias = self._distance_bias(len(ids))
        for layer in self._layers:
            attended = layer.out(self._attended(layer, states[-1], bias))
            middle = layer_norm(attended + states[-1], *layer.attention_norm, self._epsilon)
            outcome = layer.outer(self._activation(layer.inner(middle)))
            states.append(layer_norm(outcome + middle, *layer.norm, self._epsilon))
        return states

    def _embeddings(self, ids: Ids) -> Array:
        rows = self._names.rows("embeddings.word_embeddings.weight", ids)
        if self._types is not None:
            # Single texts are all of the first type.
            rows = rows + self._types[0]
        if self.kind.counts_from_padding:  # a padding token within a text does not advance the position
            real = ids != PADDING
            # As in transformers: padding itself has the position PADDING.
            positions = np.cumsum(real) * real + PADDING
        else:
            positions = np.arange(len(ids))
        return layer_norm(rows + self._positions[positions], *self._norm, self._epsilon)

    def _attended(self, layer: Layer, states: Array, bias: Array | None) -> Array:
        """Return the output of multi-head attention before the output projection, ``(tokens, width)``."""
        tokens = len(states)
        size = self.width // self.heads

        def split(rows: Array) -> Array:
            return rows.reshape(tokens, self.heads, size).transpose(1, 0, 2)

        query, key, value = (split(linear(states)) for linear in (layer.query, layer.key, layer.value))
        # As float32: NumPy's float64 of a square root would turn the product into float64.
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(size))
        if bias is not None:
            scores = scores + bias
        attended: Array = softmax(scores) @ value
        return attended.transpose(1, 0, 2).reshape(tokens, self.width)

    def _distance_bias(self, tokens: int) -> Array | None:
        """Return MPNet's relative attention bias, ``(heads, tokens, tokens)``; ``None`` for other models."""
        if self._distances is None:
            return None
        buckets = _distance_buckets(tokens, len(self._distances))
        return self._distances[buckets].transpose(2, 0, 1)


_DISTANCES = "encoder.relative_attention_bias.weight"


def _distance_buckets(tokens: int, buckets: int) -> Ids:
    """Return the bucket of the distance between each two tokens, ``(tokens, tokens)``.

    Source: Raffel et al. 2020, "T5", section 2.1: half of the buckets for either direction, half of these for exact
    distances, and the rest for ranges that grow logarithmically.
    """
    positions = np.arange(tokens)
    distance = positions[:, None] - positions[None, :]
    half = buckets // 2
    exact = half // 2
    size = np.abs(distance)
    # In float32, as in torch, since rounding decides the bucket at an edge.
    ratio = np.log(np.maximum(size, 1).astype(np.float32) / exact) / log(FURTHEST / exact)
    ranges = np.minimum(exact + (ratio * (half - exact)).astype(np.int64), half - 1)
    buckets_of_pairs: Ids = (distance < 0) * half + np.where(size < exact, size, ranges)
    return buckets_of_pairs


class _Names:
    """The tensors of a transformer by their names without a prefix."""

    def __init__(self, weights: Weights, prefix: str) -> None:
        self._weights = weights
        # In a model with a head, the names of the base model have a prefix.
        self._prefix = ""
        if f"{prefix}embeddings.word_embeddings.weight" in weights.shapes:
            self._prefix = prefix

    def __getitem__(self, name: str) -> Array:
        return self._weights[f"{self._prefix}{name}"]

    def rows(self, name: str, indices: Ids) -> Array:
        return self._weights.rows(f"{self._prefix}{name}", indices)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._weights.shapes[f"{self._prefix}{name}"]

    def check(self, shapes: dict[str, tuple[int | None, ...]]) -> None:
        """Raise NotPlainError unless exactly these tensors exist, with these shapes."""
        stored = self._weights.shapes
        for name, shape in shapes.items():
            actual = stored.get(f"{self._prefix}{name}")
            if actual is None or len(actual) != len(shape):
                raise NotPlainError(f"it has no {name} of the usual shape")
            if any(size not in (None, length) for size, length in zip(shape, actual, strict=True)):
                raise NotPlainError(f"{name} has another shape than its configuration says")
        # A tensor of unknown use may change what is computed, so that torch must compute it.
        names = {f"{self._prefix}{name}" for name in (*shapes, *UNUSED)}
        if unexpected := stored.keys() - names:
            raise NotPlainError(f"it has {min(unexpected)} too")


_UNKNOWN = (
    *("is_decoder", "add_cross_attention", "sinusoidal_pos_embds"),
    *("auto_map", "quantization_config", "pruned_heads", "transformers_weights"),
)
"""Settings that change the computation, and are not supported."""


def _kind(config: dict[str, Any]) -> Kind:
    kind = KINDS.get(config.get("model_type", ""))
    if kind is None:
        raise NotPlainError(f"it is of the kind {config.get('model_type')}")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise NotPlainError("its positions are relative")
    if any("SequenceClassification" in name for name in config.get("architectures") or ()):
        raise NotPlainError("it scores pairs")
    for key in _UNKNOWN:
        if config.get(key):
            raise NotPlainError(f"it has {key}")
    if config.get(kind.activation, "gelu") not in OF_TRANSFORMERS:
        raise NotPlainError(f"its activation is {config.get(kind.activation)}")
    # MPNet, which has no types, takes 1 for the padding token whatever its configuration says.
    if kind.counts_from_padding and kind.types and config.get("pad_token_id", PADDING) != PADDING:
        raise NotPlainError("its padding token is another one")
    if config.get("relative_attention_num_buckets", 32) != 32:
        raise NotPlainError("it has another number of distances")
    return kind


def _count(config: dict[str, Any], key: str) -> int:
    value = config.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise NotPlainError(f"its {key} is {value}")
    return value
