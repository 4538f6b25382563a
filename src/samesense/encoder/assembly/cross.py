"""Cross-encoders: models that read both texts of a pair together and return one score."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.util import load_file_path

from samesense.encoder.assembly.build import check_device
from samesense.encoder.assembly.card_data import offline_cross_card_data
from samesense.encoder.assembly.padding import fit_tokenizers
from samesense.encoder.assembly.trial import check_logits, trial_logits
from samesense.encoder.forward.positions import set_length
from samesense.encoder.forward.precision import autocast, inference_precision
from samesense.encoder.forward.reading import UnreadPairWatch
from samesense.encoder.forward.routes import default_prompt
from samesense.encoder.model_files import Modules, SentenceTransformersConfig, TransformersConfig, read_model_file
from samesense.encoder.names import weights_source
from samesense.errors import ModelError
from samesense.execution.progress import progress_bar, without_bars
from samesense.execution.unread import note
from samesense.execution.weights import checked_weights
from samesense.failures import opening
from samesense.hub import hub_access
from samesense.schemas import Schema
from samesense.types import Pair, Precision, Score, Scores

CACHED_CHARACTERS = 2**26
"""Maximum number of characters of pairs whose scores are cached; beyond it the cache is emptied."""

BATCH_PAIRS = 32
"""Pairs in one forward, as in sentence-transformers."""


def is_cross_encoder(source: str) -> bool:
    """Return whether a folder or hub name holds a cross-encoder.

    That is one saved as such by sentence-transformers, or a bare transformer with a classification head. If its files
    cannot be read, as for a hub name without network, the answer is no. ModelError if they are damaged.
    """
    settings = _read_config(source, "config_sentence_transformers.json", SentenceTransformersConfig)
    if settings is not None and settings.model_type is not None:
        return settings.model_type == "CrossEncoder"
    if _read_config(source, "modules.json", Modules) is not None:
        return False
    config = _read_config(source, "config.json", TransformersConfig)
    heads = (config.architectures if config is not None else None) or [""]
    return heads[0].endswith("ForSequenceClassification")


@without_bars()
def load_cross_encoder(source: str, *, device: str | None = None) -> CrossEncoder:
    """Load a cross-encoder by folder or hub name.

    ModelError if it cannot be read, or does not return one score per pair; ConfigError if torch cannot use the device.
    """
    check_device(device)
    with (
        opening(f"the cross-encoder {source!r}", "Give the folder of one, or a hub name while the hub can be reached."),
        hub_access(weights_source(source)),
        checked_weights() as weights,
    ):
        model = CrossEncoder(source, device=device, model_card_data=offline_cross_card_data())
        model.float()  # its weights may be stored in half precision
        fit_tokenizers(model)
        if model.config is not None and model.config.pad_token_id is None:
            model.config.pad_token_id = model.tokenizer.pad_token_id  # by which a language model finds the last token
        weights.allow_unused(lambda: [trial_logits(model)])
        check_logits(model)
        set_length(model, None)
    if model.num_labels != 1:
        raise ModelError(
            f"A cross-encoder must give one score a pair; {source!r} gives {model.num_labels}, one for each of its "
            "classes. Use one that was trained on scores, or fine-tune it with one label."
        )
    return model


def describe_cross(model: CrossEncoder, precision: Precision) -> str:
    """Return, in words, everything about a cross-encoder that changes its scores."""
    activation = type(model.activation_fn).__name__
    output = f"{activation.lower()} of the logit" if activation != "Identity" else "the logit"
    arithmetic = inference_precision(precision, torch.device(model.device))
    description = (
        f"cross-encoder, {output}, texts in the order given, {arithmetic}, at most {model.max_seq_length} tokens"
    )
    prompt = default_prompt(model)
    if not prompt:
        return description
    return f"{description}, prompt {prompt!r}"


def as_scores(model: CrossEncoder, *, precision: Precision = "float32") -> Score:
    """Return a loaded model as a score, which computes each distinct pair once per call and keeps the order of texts.

    The model's activation is computed from the logit in float64, where a sigmoid does not turn large logits into ties.
    """
    return partial(_scores, model, as_logits(model, precision=precision))


def _scores(model: CrossEncoder, logits: Score, pairs: Sequence[Pair]) -> Scores:
    distinct = list(dict.fromkeys(pairs))
    if not distinct:
        return np.zeros(0, dtype=np.float64)
    values = model.activation_fn(torch.from_numpy(logits(distinct))).numpy()
    score_of = dict(zip(distinct, values.tolist(), strict=True))
    return np.array([score_of[pair] for pair in pairs], dtype=np.float64)


class CachedScore:
    """A score with a cache of pairs, whose size is limited by :data:`CACHED_CHARACTERS`.

    ``__wrapped__`` is the score without a cache.
    """

    def __init__(self, score: Score) -> None:
        self.__wrapped__ = score
        self._scores: dict[Pair, float] = {}
        self._characters = 0

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Return the score of each pair, ``(pairs,)``."""
        distinct = dict.fromkeys(pairs)
        # Taken out first, as the cache may be emptied below.
        score_of = {pair: value for pair in distinct if (value := self._scores.get(pair)) is not None}
        fresh = [pair for pair in distinct if pair not in score_of]
        if fresh:
            score_of.update(zip(fresh, self.__wrapped__(fresh).tolist(), strict=True))
            if self._characters > CACHED_CHARACTERS:
                self._scores.clear()
                self._characters = 0
            self._scores.update((pair, score_of[pair]) for pair in fresh)
            self._characters += sum(len(first) + len(second) for first, second in fresh)
        return np.array([score_of[pair] for pair in pairs], dtype=np.float64)


def as_logits(model: CrossEncoder, *, precision: Precision = "float32") -> Score:
    """Return a loaded model as a score: its unbounded logits, without a cache."""
    return partial(_logits, model, inference_precision(precision, torch.device(model.device)))


def _logits(model: CrossEncoder, arithmetic: Literal["float32", "bfloat16"], pairs: Sequence[Pair]) -> Scores:
    device = torch.device(model.device)
    watch = UnreadPairWatch(model)

    def count(module: torch.nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        watch.look(inputs[0])
        bar.update(min(BATCH_PAIRS, len(pairs) - bar.n))

    with autocast(device, arithmetic), progress_bar("score", "pair", len(pairs), leave=False, inner=True) as bar:
        counting = model.register_forward_hook(count)
        try:
            logits = model.predict(
                list(pairs), batch_size=BATCH_PAIRS, activation_fn=torch.nn.Identity(), show_progress_bar=False
            )
        finally:
            counting.remove()
    note(watch.unread(pairs), model)
    return np.asarray(logits, dtype=np.float64)


def _read_config(source: str, name: str, schema: type[Schema]) -> Schema | None:
    """Return the content of a JSON file of a model, ``None`` if it has none; ModelError if it is damaged."""
    try:
        with hub_access(source):
            path = load_file_path(source, name)
    except (OSError, ValueError):
        return None
    if path is None:
        return None
    return read_model_file(Path(path), schema)
