"""Smaller start points: some layers of a transformer, the rest left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling
from torch import nn

from samesense.errors import ConfigError, ModelError


def first_layers(model: SentenceTransformer, layers: int) -> SentenceTransformer:
    """Keep the first layers of the model's transformer, in place.

    What comes behind the layers (a final norm, the pooling) stays. The result is a start point for training, and no
    good embedding by itself.

    Args:
        model: an encoder whose first module is a transformer.
        layers: how many to keep, at least 1.

    Returns:
        The same model.

    Raises:
        ConfigError: if the model has fewer layers.
        ModelError: if it has no single stack of layers, or its pooling weighs all of them.
    """
    return _keep(model, layers, range(layers))


def spaced_layers(model: SentenceTransformer, layers: int) -> SentenceTransformer:
    """Keep layers at even distances, the first and the last among them, in place; the rest is as in first_layers.

    Args:
        model: an encoder whose first module is a transformer.
        layers: how many to keep, at least 1; 1 keeps the first.

    Returns:
        The same model.

    Raises:
        ConfigError, ModelError: see :func:`first_layers`.

    Source: Sanh et al. 2019 (DistilBERT), who start a student from every other layer of its teacher.
    Differs: the last layer is always kept, whatever the depth.
    """
    config: Any = getattr(getattr(model[0], "model", None), "config", None)
    last, gaps = getattr(config, "num_hidden_layers", 1) - 1, max(1, layers - 1)
    return _keep(model, layers, [(at * last + gaps // 2) // gaps for at in range(layers)])


def _keep(model: SentenceTransformer, layers: int, kept: Sequence[int]) -> SentenceTransformer:
    """Keep the layers at these positions, rising, and number them anew."""
    trunk: Any = getattr(model[0], "model", None)
    config: Any = getattr(trunk, "config", None)
    depth = getattr(config, "num_hidden_layers", None)
    if trunk is None or not isinstance(depth, int):
        raise ModelError(f"Layers can be cut from transformers only; this model begins with {type(model[0]).__name__}.")
    if any(isinstance(module, WeightedLayerPooling) for module in model):
        raise ModelError("The pooling of this model weighs its layers. Cut the layers first, then choose the pooling.")
    if not 1 <= layers <= depth:
        raise ConfigError(f"layers must lie between 1 and {depth}, the depth of this model; received {layers}.")
    stack = _stack(trunk, depth)
    module: Any
    for at in sorted(set(range(depth)) - set(kept), reverse=True):
        del stack[at]
    for at, layer in enumerate(stack):
        for module in layer.modules():
            if hasattr(module, "layer_idx"):  # a decoder's place in its cache
                module.layer_idx = at
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None):
        config.layer_types = [config.layer_types[at] for at in kept]
    return model


def _stack(trunk: nn.Module, depth: int) -> nn.ModuleList:
    """Return the one list of ``depth`` modules that lies nearest to the root."""
    found = [
        (name.count("."), module)
        for name, module in trunk.named_modules()
        if isinstance(module, nn.ModuleList) and len(module) == depth
    ]
    nearest = [module for level, module in found if level == min(level for level, _ in found)]
    if len(nearest) != 1:
        raise ModelError(
            f"{type(trunk).__name__} has {len(nearest) or 'no'} lists of its {depth} layers, and one is needed to cut "
            "them. Cut the model with its own tools, and give the folder."
        )
    return nearest[0]
