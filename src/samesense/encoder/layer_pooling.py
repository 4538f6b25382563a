"""Layer weights of the poolings over several layers, and their names; needs no torch."""

from __future__ import annotations

from collections.abc import Sequence

from samesense.types import First, PoolingName


def layer_weights(layers: int, pooling: PoolingName, first: First) -> list[float]:
    """Return the weights of the last hidden states; a model has ``layers + 1`` of them, embeddings included."""
    if pooling == "last-2":
        return [1.0, 1.0]
    between = layers - 2 if first == "layer" else layers - 1
    if between < 0:  # a one-layer model: first and last are the same layer
        return [1.0]
    return [1.0, *[0.0] * between, 1.0]


def match_layer_pooling(weights: Sequence[float], layers: int, start: int) -> tuple[PoolingName, First] | None:
    """Return the pooling with these weights for layers from ``start`` on; ``None`` if there is none."""
    for pooling, first in _OF_LAYERS:
        expected = layer_weights(layers, pooling, first)
        if list(weights) == expected and start == layers + 1 - len(expected):
            return pooling, first
    return None


def pooling_text(pooling: PoolingName, first: First) -> str:
    """Return a pooling over layers in words."""
    return pooling if first == "layer" else f"{pooling} (first = embeddings)"


_OF_LAYERS: tuple[tuple[PoolingName, First], ...] = (
    ("first-last", "layer"),
    ("first-last", "embeddings"),
    ("last-2", "layer"),
)
