"""Base classes of the losses of embeddings, so that each loss is only its formula.

They turn the functions of :mod:`samesense.losses` into modules for ``SentenceTransformerTrainer``. The base class
encodes all columns together, sorted by length, under an optional token budget; gathers the rows of all processes, so
that several devices give the value and the gradient of the joined batch; and computes the loss in float32 outside
autocast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from samesense.errors import ConfigError
from samesense.losses.cosine import check_number, row_cosine
from samesense.losses.lazy import F, Module, torch

if TYPE_CHECKING:
    from torch import Tensor, nn

LabelKind = Literal["none", "order", "binary", "number", "class", "row", "grouped"]
"""Labels that a loss takes: none, numbers whose order counts, 0 and 1, numbers on the cosine's scale, integer classes
from 0, the row number of each example, or a number and the group of each example."""


class TermMeans:
    """Means of the terms of a loss over the training steps since they were last taken."""

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts: Counter[str] = Counter()

    def add(self, name: str, value: Tensor) -> None:
        """Add the value of a term in one step; what is not computed for training is left out."""
        if torch.is_grad_enabled():
            # Summed on its device: reading it out would wait for the step to end.
            self._sums[name] = value.detach() + self._sums.get(name, 0.0)
            self._counts[name] += 1

    def take(self) -> dict[str, float]:
        """Return the mean of each term, and begin again."""
        means = {name: float(total) / self._counts[name] for name, total in self._sums.items()}
        self._sums.clear()
        self._counts.clear()
        return means


class LossModule(Module):
    """Base of all loss modules: it has settings, whose numbers must be finite."""

    mini_batch_num_tokens: int | None
    _settings: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the loss, by name; setting a number that is not finite raises ValueError."""
        return self._settings

    @settings.setter
    def settings(self, settings: dict[str, Any]) -> None:
        for name, value in settings.items():
            if isinstance(value, float):
                check_number(name, value)
        self._settings = settings

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that a model card shows."""
        return {**self.settings, "mini_batch_num_tokens": self.mini_batch_num_tokens}


class EmbeddingLoss(LossModule):
    """Base of the losses of embeddings. A loss states how many columns it takes and defines :meth:`loss`.

    A head of the loss is applied in :meth:`loss`, to the gathered rows: every process then has its whole gradient. It
    would not be averaged, as the trainer wraps the model in DDP and not the loss.

    Every loss takes these arguments, besides its own.

    Args:
        model: the sentence-transformers model to train.
        mini_batch_num_tokens: maximum number of tokens whose activations are held at once; larger batches are encoded
            in smaller ones, with the same loss and gradient. ``None`` holds all.
    """

    takes = "two text columns"
    two_views = False  # of a single column, by dropout
    columns: tuple[int, int | None] = (2, 2)
    labels: LabelKind = "none"

    def __init__(self, model: nn.Module, *, mini_batch_num_tokens: int | None = None) -> None:
        super().__init__()
        self.model = model
        self.mini_batch_num_tokens = mini_batch_num_tokens
        self.settings = {}
        self.matryoshka: tuple[int, ...] = ()  # additional widths, see nest

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Return the scalar loss of one batch of tokenised columns, with their labels if the loss takes any.

        Raises:
            ValueError: if the number of columns does not fit.
        """
        from samesense.encoder.forward.batching import embed_columns  # loads sentence-transformers

        columns = list(sentence_features)
        if not fits_bounds(len(columns), self.columns):
            raise ValueError(f"{type(self).__name__} takes {self.takes}; received {len(columns)} columns.")
        embeddings = embed_columns(self.model, self.views(columns), mini_batch_num_tokens=self.mini_batch_num_tokens)
        return self.compute_loss_from_embeddings(embeddings, labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None = None) -> Tensor:
        """Return the scalar loss of ``(batch, dim)`` tensors, one per column and view, with the batch's labels."""
        # bfloat16 cannot tell apart cosines near 1 that differ by less than 0.004.
        with torch.autocast(embeddings[0].device.type, enabled=False):
            total = self._loss_of(embeddings, labels)
            for width in self.matryoshka:
                total = total + self._loss_of([self._truncate(rows, width) for rows in embeddings], labels)
            return total

    def _loss_of(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        from samesense.losses.gather import gather  # loads torch

        tensors, labels = self.before_gather(embeddings, labels)
        return self.loss([gather(rows) for rows in tensors], None if labels is None else gather(labels))

    def _truncate(self, rows: Tensor, width: int) -> Tensor:
        """Return the first ``width`` dimensions of each row, padded with 0 if a layer of the loss needs whole rows."""
        # a loss without layers of its own takes any dimension
        if all(child is self.model for child in self.children()):
            return rows[:, :width]
        return F.pad(rows[:, :width], (0, rows.shape[1] - width))

    def views(self, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the columns to encode: a single one twice where dropout is to make two views of it."""
        if self.two_views and len(columns) == 1:
            return columns * 2
        return columns

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return the tensors of this process that :meth:`loss` needs; scores are cheaper to gather than embeddings.

        ValueError if the loss takes labels and there are none.
        """
        if self.labels == "none":
            return embeddings, None
        if labels is None:
            raise ValueError(f"{type(self).__name__} needs a label for each pair, and the data has none.")
        if self.labels == "grouped":
            return embeddings, labels
        return embeddings, labels.view(-1)

    def loss(self, tensors: list[Tensor], labels: Any) -> Tensor:
        """Return the scalar loss of the tensors of :meth:`before_gather`, gathered from all processes.

        ``tensors`` are by default the ``(batch, dim)`` embeddings of each column and view; labels ``(batch,)`` are
        ``None`` for a loss that takes none.
        """
        raise NotImplementedError


class CosineLoss(EmbeddingLoss):
    """Base of losses of one similarity per pair, the cosine; under DDP only scores and labels are gathered."""

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return the similarity ``(pairs,)`` and the labels of this process's pairs."""
        return super().before_gather([self.similarity(*embeddings)], labels)

    def similarity(self, u: Tensor, v: Tensor) -> Tensor:
        """Return the similarity ``(pairs,)`` of each row of ``u`` with the same row of ``v``."""
        return row_cosine(u, v)


def fits_bounds(columns: int, bounds: tuple[int, int | None]) -> bool:
    """Return whether a number of columns is within the bounds of a loss."""
    least, most = bounds
    return least <= columns and (most is None or columns <= most)


def nest(loss: EmbeddingLoss, widths: Sequence[int], dim: int | None) -> None:
    """Make a loss sum its values over embeddings truncated to each of ``widths`` and over the whole ones.

    The model is run once, and its embeddings are truncated, so that a token budget and several devices stay exact.
    ConfigError as by :func:`check_widths`.

    Source: Kusupati et al. 2022 (Matryoshka representation learning), Eq. 1 with all weights 1.
    Differs: not for losses without layers. A layer of the loss itself (the classifier of softmax, a projection head) is
        shared by all widths and reads 0 for the dimensions cut off, as in the paper's efficient form.
    """
    check_widths(widths, dim)
    loss.matryoshka = tuple(widths)


def check_widths(widths: Sequence[int], dim: int | None) -> None:
    """Raise ConfigError unless all widths of Matryoshka are less than ``dim``, that of the model's vectors."""
    if dim is None or max(widths, default=0) >= dim:
        raise ConfigError(
            f"`matryoshka` takes widths below that of the model's vectors, {dim}, which is always trained; received "
            f"{', '.join(map(str, widths))}."
        )
