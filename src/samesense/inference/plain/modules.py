"""The modules after the transformer: poolings, dense layers and norms, for a single text without padding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from samesense.encoder.layer_pooling import layer_weights, match_layer_pooling, pooling_text
from samesense.inference.plain.activations import OF_TORCH, identity, layer_norm
from samesense.inference.plain.weights import FILE, Array, NotPlainError, Weights
from samesense.types import PoolingName

Pool = Callable[[Array], Array]
"""Maps the hidden states of tokens ``(tokens, width)`` to a vector ``(width,)``."""

Map = Callable[[Array], Array]
"""Maps a vector to a vector."""


def _mean(states: Array) -> Array:
    mean: Array = states.mean(axis=0)
    return mean


def _mean_sqrt(states: Array) -> Array:
    total: Array = states.sum(axis=0) / np.float32(np.sqrt(len(states)))
    return total


def _weighted_mean(states: Array) -> Array:
    weights = np.arange(1, len(states) + 1, dtype=np.float32)
    mean: Array = weights @ states / weights.sum()
    return mean


POOLS: dict[str, Pool] = {
    "mean": _mean,
    "cls": lambda states: states[0],
    "max": lambda states: states.max(axis=0),
    "lasttoken": lambda states: states[-1],
    "mean_sqrt_len_tokens": _mean_sqrt,
    "weightedmean": _weighted_mean,
}

_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Flags of folders saved before sentence-transformers 5.3, in the order in which vectors are concatenated."""


class Pooling:
    """Maps the hidden states of all layers to a vector.

    Attributes:
        name: description, as by :func:`samesense.encoder.assembly.pooling.describe_pooling`.
        modes: poolings whose vectors are concatenated.
        includes_prompt: whether the tokens of the prompt are pooled too.
    """

    def __init__(self, modes: list[str], *, includes_prompt: bool = True) -> None:
        """Create a pooling of the last layer."""
        if unknown := set(modes) - POOLS.keys():
            raise NotPlainError(f"it pools by {min(unknown)}")
        self.modes = modes
        self.includes_prompt = includes_prompt
        self._layers: Array | None = None
        self._start = 0
        self.name = "+".join(modes)

    def weigh(self, layers: Array, start: int, depth: int) -> None:
        """Pool a weighted mean of the layers from ``start`` on instead of the last one; ``depth`` is their number."""
        self._layers = layers
        self._start = start
        match = match_layer_pooling([round(float(weight), 4) for weight in layers], depth, start)
        self.name = pooling_text(*match) if match else f"{self.name} of weighted layers"

    def __call__(self, states: list[Array]) -> Array:
        """Return the vector of a text."""
        tokens = states[-1]
        if self._layers is not None:
            chosen = np.stack(states[self._start :])
            # Divided by the sum of the weights, as in sentence-transformers.
            tokens = np.tensordot(self._layers, chosen, axes=1) / self._layers.sum()
        return np.concatenate([POOLS[mode](tokens) for mode in self.modes])


def chosen_pooling(pooling: PoolingName, depth: int) -> Pooling:
    """Return a pooling of :mod:`samesense.encoder.assembly.pooling` by its name."""
    if pooling in POOLS:
        return Pooling([pooling])
    weights = np.array(layer_weights(depth, pooling, "layer"), dtype=np.float32)
    pool = Pooling(["mean"])
    pool.weigh(weights, depth + 1 - len(weights), depth)
    return pool


def read_pooling(config: dict[str, Any], width: int) -> Pooling:
    """Return the pooling of a ``config.json``; NotPlainError for unsupported settings."""
    _check_keys(config, {"embedding_dimension", "word_embedding_dimension", "pooling_mode", "include_prompt", *_FLAGS})
    if config.get("embedding_dimension", config.get("word_embedding_dimension")) != width:
        raise NotPlainError("its pooling is of another width")
    mode = config.get("pooling_mode")
    if mode is None:
        modes = [name for flag, name in _FLAGS.items() if config.get(flag)]
        if not modes:
            raise NotPlainError("its pooling states no mode")
    elif any(flag in config for flag in _FLAGS):
        raise NotPlainError("its pooling states two modes")
    else:
        modes = [mode] if isinstance(mode, str) else list(mode)
    return Pooling(modes, includes_prompt=config.get("include_prompt", True))


def read_layers(folder: Path, config: dict[str, Any], depth: int) -> tuple[Array, int]:
    """Return the layer weights in a folder, and the first layer; NotPlainError if they do not fit the model."""
    _check_keys(config, {"embedding_dimension", "word_embedding_dimension", "num_hidden_layers", "layer_start"})
    weights = Weights(folder / FILE)
    # Like the 12 below, the default of sentence-transformers.
    start = config.get("layer_start", 4)
    if weights.shapes != {"layer_weights": (depth + 1 - start,)} or config.get("num_hidden_layers", 12) != depth:
        raise NotPlainError("its weights of layers are not those of its layers")
    return weights["layer_weights"], start


def read_map(kind: str, folder: Path, config: dict[str, Any], width: int) -> tuple[Map, int]:
    """Return a module after the pooling as a function, and its output dimensions; NotPlainError for other kinds."""
    if kind == "Normalize":
        _check_keys(config, {*_NAMES})
        _check_names(config)
        return _unit, width
    if kind == "Dropout":
        return identity, width  # dropout does nothing at inference
    if kind == "LayerNorm":
        _check_keys(config, {"dimension"})
        return _norm(folder, width), width
    if kind == "Dense":
        return _dense(folder, config, width)
    raise NotPlainError(f"it has a module {kind}")


def _unit(vector: Array) -> Array:
    # The least length is that of torch.nn.functional.normalize.
    scaled: Array = vector / np.maximum(np.linalg.norm(vector), np.float32(1e-12))
    return scaled


def _norm(folder: Path, width: int) -> Map:
    weights = Weights(folder / FILE)
    if weights.shapes != {"norm.weight": (width,), "norm.bias": (width,)}:
        raise NotPlainError("its norm is of another width")
    weight = weights["norm.weight"]
    bias = weights["norm.bias"]
    # 1e-5 is torch's default, which sentence-transformers keeps.
    return lambda vector: layer_norm(vector, weight, bias, 1e-5)


def _dense(folder: Path, config: dict[str, Any], width: int) -> tuple[Map, int]:
    _check_keys(config, {"in_features", "out_features", "bias", "activation_function", *_NAMES})
    _check_names(config)
    # Tanh is the default of sentence-transformers.
    activation = OF_TORCH.get(config.get("activation_function", "torch.nn.modules.activation.Tanh"))
    if activation is None:
        raise NotPlainError(f"its activation is {config['activation_function']}")
    weights = Weights(folder / FILE)
    out = config["out_features"]
    shapes: dict[str, tuple[int, ...]] = {"linear.weight": (out, width)}
    if config.get("bias", True):
        shapes["linear.bias"] = (out,)
    if weights.shapes != shapes or config["in_features"] != width:
        raise NotPlainError("its dense layer is of another width")
    matrix = weights["linear.weight"]
    if "linear.bias" in shapes:
        bias = weights["linear.bias"]
    else:
        bias = np.zeros(out, dtype=np.float32)
    return lambda vector: activation(matrix @ vector + bias), out


_NAMES = ("module_input_name", "module_output_name")


def _check_names(config: dict[str, Any]) -> None:
    for key in _NAMES:
        if config.get(key) not in (None, "sentence_embedding"):
            raise NotPlainError(f"its {key} is {config[key]}")


def _check_keys(config: dict[str, Any], keys: set[str]) -> None:
    if unknown := config.keys() - keys:
        raise NotPlainError(f"the configuration of a module has {min(unknown)}")
