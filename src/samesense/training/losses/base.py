"""What all losses of embeddings share, so that each of them is only its formula.

The functions of :mod:`samesense.losses` become modules that ``SentenceTransformerTrainer`` takes. The base class sends
every column through the model together, sorted by length, under an optional token budget; joins the rows of all
processes, so that several devices give the value and the gradient of the joined batch; and has the loss formed in
float32 outside autocast.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch import distributed as dist
from torch.nn import functional as F

from samesense.encoder.forward.batching import embed_columns
from samesense.errors import ConfigError
from samesense.losses.cosine import check_number

LabelKind = Literal["none", "order", "binary", "number", "class", "row"]
"""Labels a loss takes: none, any numbers whose order counts, 0 and 1, numbers on the cosine's scale, integer classes
from 0, or the row number of each example."""


class LossModule(nn.Module):
    """What every loss module has: settings, in which no number may be NaN or infinite."""

    _settings: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """Settings of the loss, by name; ValueError where one that is not finite is put there."""
        return self._settings

    @settings.setter
    def settings(self, settings: dict[str, Any]) -> None:
        for name, value in settings.items():
            if isinstance(value, float):
                check_number(name, value)
        self._settings = settings


class EmbeddingLoss(LossModule):
    """Base of the losses of embeddings. A loss says how many columns it takes and defines :meth:`loss`.

    A head that belongs to the loss is applied in :meth:`loss`, to the joined rows: every process then has its whole
    gradient, which nothing would average, because the trainer gives DDP the model and not the loss.

    Every loss takes these arguments, besides its own.

    Args:
        model: the sentence-transformers model to train.
        mini_batch_num_tokens: most tokens whose activations are held at once; larger batches go through the model in
            parts, with the same loss and gradient. ``None`` holds all.
    """

    takes = "two text columns"
    columns: tuple[int, int | None] = (2, 2)
    labels: LabelKind = "none"

    def __init__(self, model: nn.Module, *, mini_batch_num_tokens: int | None = None) -> None:
        super().__init__()
        self.model = model
        self.mini_batch_num_tokens = mini_batch_num_tokens
        self.settings = {}
        self.matryoshka: tuple[int, ...] = ()  # further widths, see nest

    def forward(self, sentence_features: Iterable[dict[str, Any]], labels: Tensor | None = None) -> Tensor:
        """Return the scalar loss of one batch of tokenised columns, and their labels where the loss takes any.

        Raises:
            ValueError: if the number of columns does not fit.
        """
        columns = list(sentence_features)
        if not within(len(columns), self.columns):
            raise ValueError(f"{type(self).__name__} takes {self.takes}; received {len(columns)} columns.")
        embeddings = embed_columns(self.model, self.views(columns), mini_batch_num_tokens=self.mini_batch_num_tokens)
        return self.compute_loss_from_embeddings(embeddings, labels)

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor | None = None) -> Tensor:
        """Return the scalar loss of ``(batch, dim)`` tensors, one a column and view, and the batch's labels."""
        with torch.autocast(embeddings[0].device.type, enabled=False):
            total = self._formed(embeddings, labels)
            for width in self.matryoshka:
                total = total + self._formed([self._first(rows, width) for rows in embeddings], labels)
            return total

    def _formed(self, embeddings: list[Tensor], labels: Tensor | None) -> Tensor:
        tensors, labels = self.before_gather(embeddings, labels)
        return self.loss([gather(rows) for rows in tensors], None if labels is None else gather(labels))

    def _first(self, rows: Tensor, width: int) -> Tensor:
        """Return the first numbers of each row; a layer of the loss takes whole rows, in which the others are 0."""
        if all(child is self.model for child in self.children()):
            return rows[:, :width]
        return F.pad(rows[:, :width], (0, rows.shape[1] - width))

    def views(self, columns: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the columns that go through the model; a loss may take one of them twice."""
        return columns

    def before_gather(self, embeddings: list[Tensor], labels: Tensor | None) -> tuple[list[Tensor], Tensor | None]:
        """Return what :meth:`loss` needs of this process's rows; scores cost less to gather than embeddings.

        ValueError if the loss takes labels and there are none.
        """
        if self.labels == "none":
            return embeddings, None
        if labels is None:
            raise ValueError(f"{type(self).__name__} needs a label for each pair, and the data has none.")
        return embeddings, labels.view(-1)

    def loss(self, tensors: list[Tensor], labels: Any) -> Tensor:
        """Return the scalar loss of what :meth:`before_gather` gave, joined over all processes.

        ``tensors`` are by default the ``(batch, dim)`` embeddings of each column and view; labels ``(batch,)`` are
        ``None`` for a loss that takes none.
        """
        raise NotImplementedError

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that a model card shows."""
        return {**self.settings, "mini_batch_num_tokens": self.mini_batch_num_tokens}


def within(columns: int, bounds: tuple[int, int | None]) -> bool:
    """Return whether there are so many columns as a loss takes."""
    least, most = bounds
    return least <= columns and (most is None or columns <= most)


def nest(loss: EmbeddingLoss, widths: Sequence[int], dim: int | None) -> None:
    """Have a loss formed of the first numbers of each embedding too, at each of ``widths``, and all be added up.

    The model is run once, and its vectors are narrowed, so that a token budget and several devices stay exact.
    ConfigError if a width is not less than ``dim``, that of the model.

    Source: Kusupati et al. 2022 (Matryoshka representation learning), Eq. 1 with all weights 1.
    Differs: none for a loss of embeddings alone. A layer of the loss itself (the classifier of softmax, a head that is
        thrown away) is shared by all widths and reads 0 for what is cut off, as in the paper's efficient form.
    """
    if dim is None or max(widths, default=0) >= dim:
        raise ConfigError(
            f"`matryoshka` takes widths below that of the model's vectors, {dim}, which is always trained; received "
            f"{', '.join(map(str, widths))}."
        )
    loss.matryoshka = tuple(widths)


def gather(rows: Tensor) -> Tensor:
    """Return the rows of every rank, in order of rank; ``rows`` itself where there is one process.

    Ranks may bring different numbers of rows (the last batch of an epoch). A loss formed from what comes back is the
    loss of the joined batch on every rank, and after DDP has averaged the ranks' gradients, so is the gradient. Rows
    ``(own rows, ...)`` agree between ranks in all dimensions but the first; the outcome ``(rows of all ranks, ...)`` is
    differentiable in the own rows.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return rows
    gathered: Tensor = _Gather.apply(rows)  # type: ignore[no-untyped-call]
    return gathered


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        world, rank = dist.get_world_size(), dist.get_rank()
        own = torch.tensor([rows.shape[0]], device=rows.device)
        counts = [torch.zeros_like(own) for _ in range(world)]
        dist.all_gather(counts, own)
        sizes = [int(count) for count in counts]
        # all_gather takes tensors of one shape only, so shorter ranks are padded to the longest
        padded = rows.new_zeros(max(sizes), *rows.shape[1:])
        padded[: rows.shape[0]] = rows
        parts = [torch.empty_like(padded) for _ in range(world)]
        dist.all_gather(parts, padded)
        ctx.start, ctx.rows, ctx.world = sum(sizes[:rank]), rows.shape[0], world
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        own = gradients[0][ctx.start : ctx.start + ctx.rows]
        return own * int(ctx.world)  # DDP divides the sum of the ranks' gradients by their number
