"""What SimCSE and RankCSE do to a model: make two views of a text by dropout, add a head, follow its geometry."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Dense
from sentence_transformers.util import batch_to_device
from torch import nn
from transformers import TrainerCallback, TrainerState

from samesense.data import PairData
from samesense.encoder.forward.batching import tokenize_texts
from samesense.encoder.forward.dropout import in_mode
from samesense.encoder.forward.grad_cache import forward
from samesense.errors import ConfigError, ModelError
from samesense.evaluation.geometry import GeometryTask
from samesense.inference.models.load import load
from samesense.losses.base import TermMeans
from samesense.losses.info_nce import projection
from samesense.losses.rank_cse import RankCSE
from samesense.recipes.unsupervised.settings import Head, ViewSettings
from samesense.reports.store import TERM

logger = logging.getLogger(__name__)


def set_dropout(model: nn.Module, p: float) -> None:
    """Give every dropout of the model this probability, in place, also the attention's where it is but a number."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = p
        if isinstance(getattr(module, "attention_dropout", None), float):
            module.attention_dropout = p  # type: ignore[assignment]


def check_two_views(model: SentenceTransformer, texts: Sequence[str], advice: str) -> None:
    """Raise if a model in training gives a text the same vector twice; leaves the random state as it was."""
    # A few texts suffice, as dropout changes every vector.
    features = batch_to_device(tokenize_texts(model, texts[:8]), model.device)
    with in_mode(model, training=True), torch.random.fork_rng(), torch.no_grad():
        first = forward(model, features)
        second = forward(model, features)
    if torch.equal(first, second):
        raise ConfigError(
            "Two views of a sentence differ by dropout, and this model has none: it embeds a text twice alike. "
            f"{advice}"
        )


def new_head(model: SentenceTransformer, head: Head) -> nn.Module | None:
    """Return the head that is trained and thrown away, where that is asked for; a kept one goes behind the model.

    To be called once the seed is set: its weights are drawn here. A kept head is a ``Dense`` behind the model's last
    module, put there in place.
    """
    if head == "none":
        return None
    dim = model.get_embedding_dimension()
    if dim is None:
        raise ModelError("A head needs the width of the embeddings, and this model does not say it. Set head to none.")
    if head == "kept":
        model.append(Dense(dim, dim).to(model.device))
        return None
    return projection(dim).to(model.device)


class GeometryPath(TrainerCallback):
    """Writes alignment and uniformity of the dev set into the history at each evaluation, the start among them.

    Pairs near the top of the scale are positives; see :class:`~samesense.evaluation.geometry.GeometryTask`.

    Source: Liu et al. 2023 (RankCSE), Fig. 4 and appendix H; Wang and Isola 2020 for the quantities.
    """

    def __init__(self, dev: PairData) -> None:
        self.task = GeometryTask(dev)

    def on_evaluate(self, args: Any, state: TrainerState, control: Any, model: Any = None, **kwargs: Any) -> None:
        """Measure the model as it was just evaluated on dev."""
        # With several processes, DistributedDataParallel wraps the model.
        trained = load(getattr(model, "module", model), name="dev", precision="float32")
        figures = {result.metric: result.value for result in self.task.evaluate(trained).results}
        measured = {f"dev_{name}": figures[name] for name in ("alignment", "uniformity")}
        state.log_history.append({"epoch": state.epoch or 0.0, "step": state.global_step, **measured})


LEAST_LEARNT = 0.01
"""Share by which the ranking term must fall below that of equal scores, so that the ranking counts as learnt."""


class LossTerms(TrainerCallback):
    """Writes the terms of a loss into the history, beside the loss, and warns of a ranking that was not learnt.

    ``loss_rank_if_equal`` is the ranking term where all scores are equal: log n! for ListMLE over n sentences, log n
    for ListNet. A ranking term that stays there has learnt nothing from the teachers.
    """

    def __init__(self) -> None:
        self._means: TermMeans | None = None
        self._last: dict[str, float] = {}

    def follow(self, loss: RankCSE) -> RankCSE:
        """Take the loss whose terms are written, and return it."""
        self._means = loss.term_means
        return loss

    def on_log(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Add the means since the last log to the entry of the loss."""
        # The logs of evaluations have no loss of training.
        if self._means is None or "loss" not in state.log_history[-1]:
            return
        means = self._means.take()
        if not means:
            return
        state.log_history[-1].update({f"{TERM}{name}": round(value, 4) for name, value in means.items()})
        self._last = means

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Warn if the ranking term ended where it would be if all scores were equal."""
        rank = self._last.get("rank")
        equal = self._last.get("rank_if_equal")
        if rank is None or equal is None or not state.is_world_process_zero:
            return
        if rank > (1 - LEAST_LEARNT) * equal:
            logger.warning(
                f"the ranking of the teachers was not learnt: its term ended at {rank:.4g}, and scores that are all "
                f"equal have {equal:.4g}. Train longer, raise gamma or tau2, or take batches of neighbours or another "
                "teacher."
            )


def geometry_callbacks(settings: ViewSettings, dev: PairData | None) -> list[TrainerCallback]:
    """Return the callback that the settings ask for, or none."""
    if not settings.geometry:
        return []
    if dev is None:
        raise ConfigError("geometry is measured on the dev set, and there is none. Give dev, or leave out geometry.")
    return [GeometryPath(dev)]
