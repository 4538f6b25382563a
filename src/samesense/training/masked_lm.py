"""Masked language models: how they are opened, and a loss over the masked tokens."""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from transformers import (
    MODEL_FOR_MASKED_LM_MAPPING,
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    PreTrainedConfig,
    PreTrainedModel,
    Trainer,
)

from samesense.errors import ConfigError
from samesense.execution.progress import without_bars
from samesense.execution.weights import checked_weights
from samesense.failures import opening
from samesense.hub import hub_access
from samesense.losses.mlm import IGNORED, StatesAsGiven


class MaskedLm(NamedTuple):
    """A model with a masked-LM head, and whether the head is new because its source had none."""

    model: PreTrainedModel
    has_new_head: bool


@without_bars()
def open_masked_lm(source: str, layers: int | None = None) -> MaskedLm:
    """Load a model with a masked-LM head.

    The attention of a decoder becomes bidirectional; source: BehnamGhader et al. 2024, "LLM2Vec", section 2.1.
    ModelError if it cannot be loaded, ConfigError if it has fewer ``layers``.
    """
    with (
        opening(
            f"{source!r} as a language model",
            "Give the folder of a transformer, or a hub name while the hub can be reached.",
        ),
        hub_access(source),
        checked_weights(fewer_layers=layers is not None) as weights,
    ):
        config = AutoConfig.from_pretrained(source)
        decoder = is_decoder(config)
        if layers is not None:
            _keep_layers(config, layers, source)
        if decoder:
            config.is_causal = False  # bidirectional attention
        kind: Any = AutoModelForCausalLM if decoder else AutoModelForMaskedLM
        model = kind.from_pretrained(source, config=config, dtype=torch.float32)
        new_weights = weights.allow_head()
    has_new_head = any(not name.startswith(f"{model.base_model_prefix}.") for name in new_weights)
    return MaskedLm(model, has_new_head)


def _keep_layers(config: Any, layers: int, source: str) -> None:
    if layers > config.num_hidden_layers:
        raise ConfigError(f"{source} has {config.num_hidden_layers} layers; received layers {layers}. Give fewer.")
    config.num_hidden_layers = layers
    if getattr(config, "layer_types", None) is not None:
        config.layer_types = config.layer_types[:layers]


def is_decoder(config: PreTrainedConfig) -> bool:
    """Return whether a model predicts a token from the tokens before it, as a causal language model."""
    return type(config) not in MODEL_FOR_MASKED_LM_MAPPING


class MaskedLoss(nn.Module):
    """Cross-entropy of the masked tokens; the logits over the vocabulary are computed for these alone.

    Source: Devlin et al. 2019; for decoders BehnamGhader et al. 2024, section 2.2: a masked token is predicted from the
        hidden state before it.
    """

    def forward(self, model: Any, ids: Tensor, attention: Tensor, labels: Tensor) -> Tensor:
        """Return the mean over tokens with a label, or 0 without any; all three tensors are ``(blocks, tokens)``."""
        name = model.base_model_prefix
        trunk = getattr(model, name)
        states = trunk(input_ids=ids, attention_mask=attention).last_hidden_state
        if is_decoder(model.config):  # the state before a token predicts it
            states = states[:, :-1]
            labels = labels[:, 1:]
        masked = labels != IGNORED
        # Every architecture has its own head, so the model is run with its trunk replaced.
        setattr(model, name, StatesAsGiven())
        try:
            scores = model(inputs_embeds=states[masked].unsqueeze(0)).logits.squeeze(0)
        finally:
            setattr(model, name, trunk)
        targets = labels[masked]
        total = nn.functional.cross_entropy(scores.float(), targets, reduction="sum")
        return total / max(1, len(targets))  # torch's mean of nothing is NaN


class MaskedLmTrainer(Trainer):
    """The trainer of transformers with this loss."""

    def __init__(self, loss: MaskedLoss, **options: Any) -> None:
        super().__init__(**options)
        self.loss = loss

    def compute_loss(
        self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """Return the loss of a batch."""
        loss = self.loss.train(model.training)(model, inputs["ids"], inputs["attention"], inputs["labels"])
        if not return_outputs:
            return loss
        return (loss, {"loss": loss})
