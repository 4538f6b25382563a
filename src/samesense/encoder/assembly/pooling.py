"""Poolings of token vectors into a sentence vector, by modules that every version of sentence-transformers knows.

H0 is the output of the embedding layer, and H1..HL are those of the transformer layers; padding is not counted.

    mean         mean of HL
    cls          HL of the first token
    max          largest value of HL in each dimension
    lasttoken    HL of the last token, which in a causal model has attended to all others
    first-last   mean of (H1 + HL) / 2; with first="embeddings", of (H0 + HL) / 2
    last-2       mean of (HL-1 + HL) / 2

Source: SimCSE's code since 2022-01-14 and BERT-whitening take H1 as "first"; SimCSE before that, and DiffCSE, H0.
Differs: the CoSENT paper's text says first and last *tokens*, unlike its own code and all other work; H1 is used.
"""

from __future__ import annotations

from typing import get_args

import torch
from sentence_transformers.base.modules import Module, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding, WeightedLayerPooling
from torch import nn

from samesense.encoder.layer_pooling import layer_weights, match_layer_pooling, pooling_text
from samesense.errors import ConfigError
from samesense.types import First, PoolingName

POOLINGS: tuple[str, ...] = get_args(PoolingName)


def pooling_modules(trunk: Transformer, pooling: PoolingName = "mean", *, first: First = "layer") -> list[Module]:
    """Return the modules that follow ``trunk``; its hidden states are switched on if they are needed."""
    if pooling not in POOLINGS:
        raise ConfigError(f"pooling must be one of {', '.join(POOLINGS)}; received {pooling!r}.")
    if first == "embeddings" and pooling != "first-last":
        raise ConfigError(f"first='embeddings' goes with pooling 'first-last' only; received pooling {pooling!r}.")
    dim = trunk.get_embedding_dimension()
    if pooling in ("mean", "cls", "max", "lasttoken"):
        return [Pooling(dim, pooling)]
    layers = int(trunk.model.config.num_hidden_layers)
    trunk.model.config.output_hidden_states = True
    weights = layer_weights(layers, pooling, first)
    start = layers + 1 - len(weights)
    # The weights define the pooling, and training must not change them.
    parameter = nn.Parameter(torch.tensor(weights), requires_grad=False)
    return [
        WeightedLayerPooling(dim, num_hidden_layers=layers, layer_start=start, layer_weights=parameter),
        Pooling(dim, "mean"),
    ]


def freeze_layer_weights(model: nn.Module) -> None:
    """Freeze the layer weights of first-last and last-2, which are trainable after loading a folder."""
    for module in model.modules():
        if isinstance(module, WeightedLayerPooling):
            module.layer_weights.requires_grad_(False)


def layer_pooling(model: nn.Module) -> tuple[PoolingName, First] | None:
    """Return which of first-last and last-2 a model has; ``None`` for other layer weights, or none."""
    for module in model.modules():
        if isinstance(module, WeightedLayerPooling):
            weights = [round(float(weight), 4) for weight in module.layer_weights]
            match = match_layer_pooling(weights, module.num_hidden_layers, module.layer_start)
            if match is not None:
                return match
    return None


def describe_pooling(model: nn.Module) -> str:
    """Return the name of a model's pooling for a protocol line, such as ``first-last`` or ``cls``."""
    match = layer_pooling(model)
    if match is not None:
        return pooling_text(*match)
    name = "unknown"
    for module in model.modules():
        if isinstance(module, Pooling):
            if isinstance(module.pooling_mode, str):
                name = module.pooling_mode
            else:
                name = "+".join(module.pooling_mode)
        if isinstance(module, StaticEmbedding):
            name = "static mean"
    weighs = any(isinstance(module, WeightedLayerPooling) for module in model.modules())
    if not weighs:
        return name
    return f"{name} of weighted layers"
