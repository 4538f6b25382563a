"""Cross-encoders: models that read both texts of a pair at once and give one score."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import CrossEncoder
from sentence_transformers.util import load_file_path

from samesense.encoder.assembly.build import check_device
from samesense.encoder.assembly.card_data import offline_cross_card_data
from samesense.encoder.forward.batching import default_prompt
from samesense.encoder.forward.precision import autocast, inference_precision
from samesense.encoder.forward.reading import PairWatch
from samesense.encoder.unread import note
from samesense.errors import ModelError
from samesense.execution.progress import progress_bar, without_bars
from samesense.failures import first_line
from samesense.types import Pair, Precision, Score, Scores

REMEMBERED = 2**26
"""Characters of pairs whose scores are kept in memory; once there are more, all of them are forgotten."""

FORWARD = 32
"""Pairs of one forward; sentence-transformers' own number."""


def is_cross_encoder(source: str) -> bool:
    """Return whether a folder or hub name holds a cross-encoder.

    That is one saved by sentence-transformers as such, or a bare transformer with a classification head. A model that
    cannot be asked, such as a hub name without a hub, is none.
    """
    kind = _content(source, "config_sentence_transformers.json").get("model_type")
    if kind is not None:
        return bool(kind == "CrossEncoder")
    if _content(source, "modules.json"):
        return False
    heads = _content(source, "config.json").get("architectures") or [""]
    return str(heads[0]).endswith("ForSequenceClassification")


@without_bars()
def load_cross_encoder(source: str, *, device: str | None = None) -> CrossEncoder:
    """Load a cross-encoder by folder or hub name.

    ModelError if it cannot be read, or gives not one score a pair; ConfigError if nothing is computed on the device.
    """
    check_device(device)
    try:
        model = CrossEncoder(source, device=device, model_card_data=offline_cross_card_data())
        model.float()  # however its weights are stored
    except (OSError, ValueError, KeyError) as error:
        raise ModelError(f"Cannot load the cross-encoder {source!r}: {first_line(error)}") from error
    if model.num_labels != 1:
        raise ModelError(
            f"A cross-encoder must give one score a pair; {source!r} gives {model.num_labels}, one for each of its "
            "classes. Use one that was trained on scores, or fine-tune it with one label."
        )
    return model


def describe_cross(model: CrossEncoder, precision: Precision) -> str:
    """Return, in words, everything about a cross-encoder that changes a figure."""
    activation = type(model.activation_fn).__name__
    shown = "the logit" if activation == "Identity" else f"{activation.lower()} of the logit"
    arithmetic = inference_precision(precision, torch.device(model.device))
    said = f"cross-encoder, {shown}, texts in the order given, {arithmetic}, at most {model.max_seq_length} tokens"
    prompt = default_prompt(model)
    return f"{said}, prompt {prompt!r}" if prompt else said


def as_scores(model: CrossEncoder, *, precision: Precision = "float32") -> Score:
    """Return a model in memory as a score: each distinct pair once a call, in the order given, first text first.

    The model's own activation is computed from the logit in float64, where a sigmoid does not turn large logits into
    ties.
    """
    logits = as_logits(model, precision=precision)

    def score(pairs: Sequence[Pair]) -> Scores:
        distinct = list(dict.fromkeys(pairs))
        if not distinct:
            return np.zeros(0, dtype=np.float64)
        values = model.activation_fn(torch.from_numpy(logits(distinct))).numpy()
        own = dict(zip(distinct, values.tolist(), strict=True))
        return np.array([own[pair] for pair in pairs], dtype=np.float64)

    return score


def remember_scores(score: Score) -> Score:
    """Return a score that computes each distinct pair once, as long as it is remembered; see :data:`REMEMBERED`."""
    known: dict[Pair, float] = {}
    held = 0

    @wraps(score)  # whose __wrapped__ is the score that remembers nothing
    def remembering(pairs: Sequence[Pair]) -> Scores:
        nonlocal held
        own = {pair: value for pair in dict.fromkeys(pairs) if (value := known.get(pair)) is not None}
        fresh = [pair for pair in dict.fromkeys(pairs) if pair not in own]
        if fresh:
            own.update(zip(fresh, score(fresh).tolist(), strict=True))
            if held > REMEMBERED:
                known.clear()
                held = 0
            known.update((pair, own[pair]) for pair in fresh)
            held += sum(len(first) + len(second) for first, second in fresh)
        return np.array([own[pair] for pair in pairs], dtype=np.float64)

    return remembering


def as_logits(model: CrossEncoder, *, precision: Precision = "float32") -> Score:
    """Return a model in memory as a score: its logits, unbounded, nothing remembered between calls."""
    device = torch.device(model.device)
    arithmetic = inference_precision(precision, device)

    def score(pairs: Sequence[Pair]) -> Scores:
        watch = PairWatch(model)
        with autocast(device, arithmetic), progress_bar("score", "pair", len(pairs), leave=False, inner=True) as bar:

            def count(module: torch.nn.Module, given: tuple[Any, ...], output: Any) -> None:
                watch.look(given[0])
                bar.update(min(FORWARD, len(pairs) - bar.n))

            counting = model.register_forward_hook(count)
            try:
                logits = model.predict(
                    list(pairs), batch_size=FORWARD, activation_fn=torch.nn.Identity(), show_progress_bar=False
                )
            finally:
                counting.remove()
        note(watch.unread(pairs), model)
        return np.asarray(logits, dtype=np.float64)

    return score


def _content(source: str, name: str) -> Any:
    try:
        path = load_file_path(source, name)
        return {} if path is None else json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
