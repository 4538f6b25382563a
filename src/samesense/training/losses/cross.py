"""Losses of a cross-encoder's logits, as modules for ``CrossEncoderTrainer``.

Like the losses of embeddings they run a batch sorted by length, under an optional token budget, compute the loss in
float32 outside autocast, and under DDP from the logits of all processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from sentence_transformers.util import batch_to_device
from torch import Tensor, nn
from torch.nn import functional as F

from samesense.encoder.forward.batching import embed_columns
from samesense.losses import cosent, mse
from samesense.losses.cosine import check_scores, reduced, widen
from samesense.training.losses.base import LossModule, gather


class CrossEncoderLoss(LossModule):
    """Base of the losses of a cross-encoder, which computes one logit for each pair of two text columns.

    Args:
        model: a ``CrossEncoder`` with one logit.
        mini_batch_num_tokens: maximum number of tokens whose activations are held at once; larger batches are run in
            smaller ones, with the same loss and gradient. ``None`` holds all.

    Attributes:
        tokenise: tokenises pairs; ``None`` for the model's own ``preprocess``, with the trainer's prompt and task.

    Raises:
        ValueError: if the model has another number of logits: (batch, 2) logits would be compared across classes.
    """

    def __init__(self, model: nn.Module, *, mini_batch_num_tokens: int | None = None) -> None:
        super().__init__()
        labels = getattr(model, "num_labels", 1)
        if labels != 1:
            raise ValueError(f"{type(self).__name__} takes a cross-encoder with 1 logit a pair; this one has {labels}.")
        self.model = model
        self.mini_batch_num_tokens = mini_batch_num_tokens
        self.settings = {}
        self.tokenise: Callable[..., Any] | None = None

    def forward(
        self, inputs: Sequence[Sequence[str]], labels: Tensor, prompt: str | None = None, task: str | None = None
    ) -> Tensor:
        """Return the scalar loss of one batch of two columns of texts with labels ``(pairs,)``.

        ValueError unless there are two columns and one label per pair.
        """
        if len(inputs) != 2:
            raise ValueError(f"{type(self).__name__} takes two text columns; received {len(inputs)}.")
        if labels is None or labels.numel() != len(inputs[0]):
            received = "none" if labels is None else f"labels of shape {tuple(labels.shape)}"
            raise ValueError(
                f"{type(self).__name__} needs one label for each of {len(inputs[0])} pairs; received {received}."
            )
        tokenise: Any = self.tokenise or self.model.preprocess
        features = tokenise(list(zip(*inputs, strict=True)), prompt=prompt, task=task)
        features = batch_to_device(features, next(self.model.parameters()).device)
        logits = embed_columns(self.model, [features], mini_batch_num_tokens=self.mini_batch_num_tokens)[0].view(-1)
        with torch.autocast(logits.device.type, enabled=False):
            return self.loss(gather(logits), gather(labels.view(-1)))

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of the logits and labels ``(pairs,)`` of all processes."""
        raise NotImplementedError

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that a model card shows."""
        return {**self.settings, "mini_batch_num_tokens": self.mini_batch_num_tokens}


class CrossCoSENT(CrossEncoderLoss):
    """CoSENT of the logits, with labels on any ordinal scale.

    Args:
        temperature: divides the logits; 1/temperature is the paper's λ. Logits are unbounded, so their scale is learnt.
        margin: labels must differ by more than this to be compared.

    Source: Huang et al. 2024 (TASLP), Eq. 11.
    Differs: λ is 1 by default. The paper states 20 for all data sets; its code and the blog's have no λ.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        temperature: float = 1.0,
        margin: float = 0.0,
        mini_batch_num_tokens: int | None = None,
    ) -> None:
        super().__init__(model, mini_batch_num_tokens=mini_batch_num_tokens)
        self.settings = {"temperature": temperature, "margin": margin}

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.cosent` of the logits."""
        return cosent(logits, labels, **self.settings)


class CrossEntropy(CrossEncoderLoss):
    """Binary cross-entropy of the logits, the usual loss of a cross-encoder, with labels from 0 to 1.

    Source: Huang et al. 2024 (TASLP), section V-E, as the baseline of CoSENT.
    Differs: one logit and a sigmoid, with the value of ``BinaryCrossEntropyLoss`` of sentence-transformers. The blog's
        code has two logits and a softmax.
    """

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the mean over pairs of -y log p - (1 - y) log(1 - p), with p the sigmoid of the logit.

        ValueError if a label lies outside 0 to 1.
        """
        check_scores("CrossEntropy", logits, labels)
        outside = labels[(labels < 0) | (labels > 1)]
        if len(outside):
            raise ValueError(f"CrossEntropy takes labels from 0 to 1; received {outside[0].item():g}.")
        logits = widen(logits)
        losses = F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype), reduction="none")
        return reduced(losses, "mean")


class CrossMSE(CrossEncoderLoss):
    """Mean squared error of the logits, which learn the scale of the labels.

    Source: Sun et al. 2022 (TACL), section 5.6, "the BERT-style model ... with the L2 regression loss".
    Differs: none. The paper has no activation either.
    """

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return :func:`samesense.losses.mse` of the logits."""
        return mse(logits, labels)
