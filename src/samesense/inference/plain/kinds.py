"""Transformers that are computed alike, by how they name their settings and tensors."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """How a family of models names its settings and tensors.

    Attributes:
        prefix: before the names, in checkpoints of models with a head.
        layers: before the number of a layer.
        names: of the linear maps and norms of a layer, in the order in which they are used.
        width: key of the width of a state.
        depth: key of the number of layers.
        heads: key of the number of heads.
        inner: key of the width within a layer.
        activation: key of the activation.
        epsilon: key of what is added to variances, or ``None`` where it is 1e-12.
        types: it has embeddings of token types.
        counts_from_padding: positions begin behind the id of the padding token.
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
"""By the ``model_type`` of their configuration."""
