"""Base class of the losses of a cross-encoder's logits, as modules for ``CrossEncoderTrainer``.

Like the losses of embeddings they run a batch sorted by length, under an optional token budget, compute the loss in
float32 outside autocast, and under DDP from the logits of all processes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from samesense.losses.base import LossModule
from samesense.losses.lazy import torch

if TYPE_CHECKING:
    from torch import Tensor, nn


class CrossEncoderLoss(LossModule):
    """Base of the losses of a cross-encoder, which computes one logit for each pair of two text columns.

    Args:
        model: a ``CrossEncoder`` with one logit.
        mini_batch_num_tokens: maximum number of tokens whose activations are held at once; larger batches are run in
            smaller ones, with the same loss and gradient. ``None`` holds all.

    Attributes:
        grouped: whether the label of a pair is ``[label, group]``; see :mod:`samesense.losses.groups`.
        tokenise: tokenises pairs; ``None`` for the model's own ``preprocess``, with the trainer's prompt and task.

    Raises:
        ValueError: if the model has another number of logits: (batch, 2) logits would be compared across classes.
    """

    grouped = False

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
        self,
        inputs: Sequence[Sequence[str]],
        labels: Tensor | list[Tensor] | None,
        prompt: str | None = None,
        task: str | None = None,
    ) -> Tensor:
        """Return the scalar loss of one batch of two columns of texts with labels ``(pairs,)``.

        With groups, labels are ``(pairs, 2)`` or a list of ``[label, group]``.

        ValueError unless there are two columns and one label per pair.
        """
        # Loads sentence-transformers.
        from sentence_transformers.util import batch_to_device

        from samesense.encoder.forward.batching import embed_columns  # loads sentence-transformers
        from samesense.losses.gather import gather  # loads torch

        if len(inputs) != 2:
            raise ValueError(f"{type(self).__name__} takes two text columns; received {len(inputs)}.")
        labels = self._labels_of_pairs(labels, len(inputs[0]))
        tokenise: Any = self.tokenise or self.model.preprocess
        features = tokenise(list(zip(*inputs, strict=True)), prompt=prompt, task=task)
        features = batch_to_device(features, next(self.model.parameters()).device)
        logits = embed_columns(self.model, [features], mini_batch_num_tokens=self.mini_batch_num_tokens)[0].view(-1)
        with torch.autocast(logits.device.type, enabled=False):
            return self.loss(gather(logits), gather(labels))

    def _labels_of_pairs(self, labels: Tensor | list[Tensor] | None, pairs: int) -> Tensor:
        """Return the labels ``(pairs,)``, or with groups ``(pairs, 2)``; ValueError if there are others."""
        # The collator for cross-encoders leaves labels that are lists unstacked.
        if isinstance(labels, list) and self.grouped:
            labels = torch.stack(labels)
        columns = 2 if self.grouped else 1
        if isinstance(labels, torch.Tensor) and labels.numel() == pairs * columns:
            return labels.view(pairs, 2) if self.grouped else labels.view(-1)
        received = "none"
        if isinstance(labels, torch.Tensor):
            received = f"labels of shape {tuple(labels.shape)}"
        elif labels is not None:
            received = f"{len(labels)} lists"
        needed = "one label and one group" if self.grouped else "one label"
        raise ValueError(f"{type(self).__name__} needs {needed} for each of {pairs} pairs; received {received}.")

    def loss(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of the logits ``(pairs,)`` and labels of all processes."""
        raise NotImplementedError
