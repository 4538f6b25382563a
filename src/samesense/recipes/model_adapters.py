"""The two kinds of models: how each is built, described, trained and judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from sentence_transformers import CrossEncoder, SentenceTransformer
from torch import nn

from samesense.data import PairData
from samesense.encoder.build import build
from samesense.encoder.build_cross import build_cross, has_one_logit
from samesense.encoder.cosine import cosine_score
from samesense.encoder.cross import as_logits
from samesense.encoder.encode import as_encode
from samesense.encoder.pooling import describe_pooling
from samesense.encoder.precision import Choice
from samesense.evaluation.pairs import evaluate_pairs
from samesense.inference.models.load import load
from samesense.recipes.settings import EncoderSettings
from samesense.training.cross import fit_cross, pick_cross_precision
from samesense.training.fit import TrainOutput, fit, pick_precision
from samesense.types import Precision, Result, Score

if TYPE_CHECKING:
    from datasets import Dataset

Model = TypeVar("Model")


class Kind(Protocol[Model]):
    """What differs between kinds of models."""

    def build(self, settings: EncoderSettings) -> Model:
        """Return the start point."""

    def describe(self, model: Model, settings: EncoderSettings) -> str:
        """Return what it is, in words."""

    def pick_precision(self, model: Model, dataset: Dataset, settings: EncoderSettings) -> Choice:
        """Return the arithmetic of the training, and why it was chosen."""

    def fit(
        self, model: Model, dataset: Dataset, objective: nn.Module, settings: EncoderSettings, folder: Path, **how: Any
    ) -> TrainOutput:
        """Train ``model`` in place; see :func:`samesense.training.fit.fit`."""

    def score(self, model: Model, precision: Precision) -> Score:
        """Return pairs in, scores out."""

    def judge_before(self, model: Model, settings: EncoderSettings, test: PairData) -> list[Result]:
        """Return how good the start point is."""

    def judge_after(self, settings: EncoderSettings, test: PairData, output: Path) -> list[Result]:
        """Return how good the model saved in a run folder is."""


class BiEncoder:
    """Texts are embedded apart and compared by cosine."""

    def build(self, settings: EncoderSettings) -> SentenceTransformer:
        """Return the start point with the pooling and length asked for."""
        return build(
            settings.model, pooling=settings.pooling, first=settings.first, max_seq_length=settings.max_seq_length
        )

    def describe(self, model: SentenceTransformer, settings: EncoderSettings) -> str:
        """Return pooling and size."""
        return f"pooling {describe_pooling(model)}, {_size(model)}, at most {model.max_seq_length} tokens"

    def pick_precision(self, model: SentenceTransformer, dataset: Dataset, settings: EncoderSettings) -> Choice:
        """See :func:`samesense.training.fit.pick_precision`."""
        return pick_precision(model, dataset, settings)

    def fit(
        self,
        model: SentenceTransformer,
        dataset: Dataset,
        objective: nn.Module,
        settings: EncoderSettings,
        folder: Path,
        **how: Any,
    ) -> TrainOutput:
        """See :func:`samesense.training.fit.fit`."""
        return fit(model, dataset, objective, settings, folder, **how)

    def score(self, model: SentenceTransformer, precision: Precision) -> Score:
        """Return the cosine of embeddings."""
        return cosine_score(as_encode(model, precision=precision))

    def judge_before(self, model: SentenceTransformer, settings: EncoderSettings, test: PairData) -> list[Result]:
        """Return the figures of the start point."""
        return evaluate_pairs(load(model, name=f"{settings.model} (before)", precision="float32"), test)

    def judge_after(self, settings: EncoderSettings, test: PairData, output: Path) -> list[Result]:
        """Return the figures of the saved model."""
        return evaluate_pairs(load(output, precision="float32", seed=settings.seed), test)


class PairEncoder:
    """Both texts are read together, and one logit comes out."""

    def build(self, settings: EncoderSettings) -> CrossEncoder:
        """Return the start point, with a head of one logit."""
        return build_cross(settings.model, max_seq_length=settings.max_seq_length, seed=settings.seed)

    def describe(self, model: CrossEncoder, settings: EncoderSettings) -> str:
        """Return whether the head is new, and the size."""
        head = "its own" if has_one_logit(settings.model) else "a new"
        return f"cross-encoder with {head} head, {_size(model)}, at most {model.max_seq_length} tokens a pair"

    def pick_precision(self, model: CrossEncoder, dataset: Dataset, settings: EncoderSettings) -> Choice:
        """See :func:`samesense.training.cross.pick_cross_precision`."""
        return pick_cross_precision(model, dataset, settings)

    def fit(
        self,
        model: CrossEncoder,
        dataset: Dataset,
        objective: nn.Module,
        settings: EncoderSettings,
        folder: Path,
        **how: Any,
    ) -> TrainOutput:
        """See :func:`samesense.training.cross.fit_cross`."""
        return fit_cross(model, dataset, objective, settings, folder, **how)

    def score(self, model: CrossEncoder, precision: Precision) -> Score:
        """Return the logits."""
        return as_logits(model, precision=precision)

    def judge_before(self, model: CrossEncoder, settings: EncoderSettings, test: PairData) -> list[Result]:
        """Return the figures of a start point with a head of its own; a new head says nothing."""
        if not has_one_logit(settings.model):
            return []
        return evaluate_pairs(load(settings.model, name=f"{settings.model} (before)", precision="float32"), test)

    def judge_after(self, settings: EncoderSettings, test: PairData, output: Path) -> list[Result]:
        """Return the figures of the saved model."""
        return evaluate_pairs(load(output, precision="float32", seed=settings.seed), test)


def _size(model: nn.Module) -> str:
    return f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters"
