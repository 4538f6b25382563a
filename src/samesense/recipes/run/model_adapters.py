"""Bi-encoders and cross-encoders: how each is built, described, scored and evaluated before training."""

from __future__ import annotations

import math

from sentence_transformers import CrossEncoder, SentenceTransformer
from torch import nn

from samesense.encoder.assembly.build import build, is_bare, set_prompt
from samesense.encoder.assembly.build_cross import build_cross, has_one_logit
from samesense.encoder.assembly.cross import as_logits
from samesense.encoder.assembly.pooling import describe_pooling
from samesense.encoder.assembly.template import chat_length
from samesense.encoder.cosine import cosine_score
from samesense.encoder.encode import as_encode
from samesense.encoder.forward.positions import set_length
from samesense.encoder.forward.routes import refuse_routes
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.recipes.settings import EncoderSettings
from samesense.types import Precision, Score


class BiEncoder:
    """Texts are embedded apart and compared by cosine."""

    def build(self, settings: EncoderSettings) -> SentenceTransformer:
        """Return the start model, by its :func:`start_settings`; it reads no less than it is trained on."""
        model = build(settings.model, pooling=settings.pooling, first=settings.first)
        refuse_routes(model, "Training")
        if settings.max_seq_length is not None and settings.max_seq_length > (model.max_seq_length or 0):
            set_length(model, settings.max_seq_length)
        return set_prompt(model, settings.prompt)

    def describe(self, model: SentenceTransformer, settings: EncoderSettings) -> str:
        """Return pooling, size, and what stands around the texts."""
        around = chat_length(model)
        chat = f", each text in the chat template of the tokenizer ({around} tokens)" if around else ""
        return f"pooling {describe_pooling(model)}, {_size(model)}, {_length(model, settings)}{chat}"

    def score(self, model: SentenceTransformer, precision: Precision) -> Score:
        """Return the cosine of embeddings."""
        return cosine_score(as_encode(model, precision=precision))

    def start(self, model: SentenceTransformer, settings: EncoderSettings) -> Model:
        """Return the start model, to be evaluated."""
        return load(model, name=f"{settings.model} (before)", precision="float32", cache=True)


class PairEncoder:
    """Both texts are read together, and one logit comes out."""

    def build(self, settings: EncoderSettings) -> CrossEncoder:
        """Return the start model, with a head of one logit."""
        # The seed is that of a new head, whose weights are drawn here.
        return set_prompt(build_cross(settings.model, seed=settings.seed), settings.prompt)

    def describe(self, model: CrossEncoder, settings: EncoderSettings) -> str:
        """Return whether the head is new, and the size."""
        head = "its own" if has_one_logit(settings.model) else "a new"
        return f"cross-encoder with {head} head, {_size(model)}, {_length(model, settings)} a pair"

    def score(self, model: CrossEncoder, precision: Precision) -> Score:
        """Return the logits."""
        return as_logits(model, precision=precision)

    def start(self, model: CrossEncoder, settings: EncoderSettings) -> Model | None:
        """Return the start model, to be evaluated, if it has a head of its own; a new head says nothing."""
        if not has_one_logit(settings.model):
            return None
        return load(settings.model, name=f"{settings.model} (before)", precision="float32")


def has_new_head(settings: EncoderSettings) -> bool:
    """Return whether training begins with a head whose weights are random, and keeps it."""
    if isinstance(adapter_of(settings), PairEncoder):
        return not has_one_logit(settings.model)
    return getattr(settings, "head", None) == "kept"


def start_settings(settings: EncoderSettings) -> EncoderSettings:
    """Return the settings with the pooling and the length of the method where the start model has none."""
    return settings.for_start(bare=is_bare(settings.model))


Adapter = BiEncoder | PairEncoder
"""What differs between kinds of models."""


def adapter_of(settings: EncoderSettings) -> Adapter:
    """Return the adapter of the kind of encoder that the settings ask for."""
    if getattr(settings, "encoder", "bi") == "cross":
        return PairEncoder()
    return BiEncoder()


def _length(model: SentenceTransformer | CrossEncoder, settings: EncoderSettings) -> str:
    model_length = model.max_seq_length
    requested = settings.max_seq_length
    if model_length is None or math.isinf(model_length):  # static vectors
        return "inputs of any length"
    shorter = ""
    if requested is not None and requested < model_length:
        shorter = f", in training {requested}"
    return f"at most {model_length}{shorter} tokens"


def _size(model: nn.Module) -> str:
    return f"{sum(p.numel() for p in model.parameters()) / 1e6:.1f} M parameters"
