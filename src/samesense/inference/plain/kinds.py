"""The supported families of transformers, which differ only in the names of their settings and tensors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """How a family of models names its settings and tensors.

    Attributes:
        prefix: prefix of tensor names in checkpoints of models with a head.
        layers: prefix of the number of a layer.
        names: names of the linear maps and norms of a layer, in the order in which they are used.
        width: key of the hidden size.
        depth: key of the number of layers.
        heads: key of the number of attention heads.
        inner: key of the intermediate size.
        activation: key of the activation.
        epsilon: key of the epsilon of layer norms, or ``None`` if it is always 1e-12.
        types: whether there are token type embeddings.
        counts_from_padding: positions start after the id of the padding token.
    """

    prefix: str
    layers: str = "encoder.layer"
    names: tuple[str, ...] = (
        "attention.self.query",
        "attention.self.key",
        "attention.self.value",
        "attention.output.dense",
        "attention.output.LayerNorm",
        "intermediate.dense",
        "output.dense",
        "output.LayerNorm",
    )
    width: str = "hidden_size"
    depth: str = "num_hidden_layers"
    heads: str = "num_attention_heads"
    inner: str = "intermediate_size"
    activation: str = "hidden_act"
    epsilon: str | None = "layer_norm_eps"
    types: bool = True
    counts_from_padding: bool = False


KINDS = {
    "bert": Kind("bert."),
    "roberta": Kind("roberta.", counts_from_padding=True),
    "xlm-roberta": Kind("roberta.", counts_from_padding=True),
    "camembert": Kind("roberta.", counts_from_padding=True),
    "mpnet": Kind(
        "mpnet.",
        names=(
            "attention.attn.q",
            "attention.attn.k",
            "attention.attn.v",
            "attention.attn.o",
            "attention.LayerNorm",
            "intermediate.dense",
            "output.dense",
            "output.LayerNorm",
        ),
        types=False,
        counts_from_padding=True,
    ),
    "distilbert": Kind(
        "distilbert.",
        layers="transformer.layer",
        names=(
            "attention.q_lin",
            "attention.k_lin",
            "attention.v_lin",
            "attention.out_lin",
            "sa_layer_norm",
            "ffn.lin1",
            "ffn.lin2",
            "output_layer_norm",
        ),
        width="dim",
        depth="n_layers",
        heads="n_heads",
        inner="hidden_dim",
        activation="activation",
        epsilon=None,
        types=False,
    ),
}
"""Families by the ``model_type`` of their configuration."""
