"""The choice between float32 and bfloat16, by what is faster on this machine."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import cache
from typing import Literal, NamedTuple

import torch
from sentence_transformers import SentenceTransformer

from samesense.encoder.forward.batching import embed_columns, tokenize_texts
from samesense.types import Precision

logger = logging.getLogger(__name__)

_MIN_SPEEDUP = 1.1
"""Minimum speed-up for which bfloat16 is chosen: it costs three digits of precision."""

_ROUNDS = 3
"""Maximum number of timed rounds."""

_CLEAR_MARGIN = 1.3
"""A ratio this many times above or below the minimum needs no second round: one round is off by 10 to 20 %."""


class PrecisionChoice(NamedTuple):
    """A precision and the reason for it."""

    precision: Literal["float32", "bfloat16"]
    reason: str


def has_bfloat16(device: torch.device) -> bool:
    """Return whether the device computes in bfloat16 (a CPU: AMX or AVX512-BF16), not merely stores it."""
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    if device.type != "cpu":
        return False
    if not hasattr(torch.cpu, "get_capabilities"):  # older versions of torch
        return False
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("amx_bf16") or capabilities.get("avx512_bf16"))


def inference_precision(precision: Precision, device: torch.device) -> Literal["float32", "bfloat16"]:
    """Resolve ``"auto"`` without measuring: bfloat16 where the device computes in it."""
    if precision != "auto":
        _warn_if_slow(precision, device)
        return precision
    if has_bfloat16(device):
        return "bfloat16"
    return "float32"


@cache  # once a process
def _warn_if_slow(precision: Literal["float32", "bfloat16"], device: torch.device) -> None:
    # A product of 1,024 x 1,024 on a processor with AVX2 alone: 126 GFLOP/s in float32, 0.9 in bfloat16.
    if precision == "bfloat16" and device.type == "cpu" and not has_bfloat16(device):
        logger.warning(
            "This processor does not compute in bfloat16: it may take a hundred times as long as float32. Give auto as "
            "the `precision`, which takes the faster one."
        )


def autocast(device: torch.device, precision: Literal["float32", "bfloat16"]) -> AbstractContextManager[None]:
    """Return the context in which matrix products run in ``precision``."""
    return torch.autocast(device.type, torch.bfloat16, enabled=precision == "bfloat16")


def training_precision(
    model: SentenceTransformer, texts: Sequence[str], precision: Precision = "auto", max_length: int | None = None
) -> PrecisionChoice:
    """Resolve ``"auto"`` by timing training steps of this model over ``texts`` on this machine in both precisions.

    Texts are cut to ``max_length`` tokens.
    """
    if precision != "auto":
        _warn_if_slow(precision, model.device)
        return PrecisionChoice(precision, "as asked for")
    if not has_bfloat16(model.device):
        return PrecisionChoice("float32", f"this {model.device.type} does not compute in bfloat16")
    if model.device.type != "cpu":
        return PrecisionChoice("bfloat16", f"this {model.device.type} computes in bfloat16")
    ratio = _speed_of_bfloat16(model, texts, max_length)
    if ratio >= _MIN_SPEEDUP:
        return PrecisionChoice("bfloat16", f"measured {ratio:.1f} times as fast as float32 on this machine")
    return PrecisionChoice("float32", f"bfloat16 measured only {ratio:.1f} times as fast on this machine")


def _speed_of_bfloat16(model: SentenceTransformer, texts: Sequence[str], max_length: int | None) -> float:
    """Return the ratio of the best float32 to the best bfloat16 step time, in alternation, after a warm-up of each.

    It ends with the first round whose ratio is clearly above or below the minimum.
    """
    state = torch.random.get_rng_state()
    best: dict[Literal["float32", "bfloat16"], float] = {"float32": float("inf"), "bfloat16": float("inf")}
    for attempt in range(_ROUNDS + 1):
        for precision in best:
            seconds = _step_seconds(model, texts, max_length, precision)
            if attempt:  # the first round warms up
                best[precision] = min(best[precision], seconds)
        if attempt and not 1 / _CLEAR_MARGIN < best["float32"] / best["bfloat16"] / _MIN_SPEEDUP < _CLEAR_MARGIN:
            break
    torch.random.set_rng_state(state)  # so that the timing does not change the run's random numbers
    return best["float32"] / best["bfloat16"]


def _step_seconds(
    model: SentenceTransformer,
    texts: Sequence[str],
    max_length: int | None,
    precision: Literal["float32", "bfloat16"],
) -> float:
    started = time.perf_counter()
    with autocast(model.device, precision):
        embeddings = embed_columns(model, [tokenize_texts(model, texts, max_length)])[0]
    if embeddings.requires_grad:
        embeddings.float().square().sum().backward()  # type: ignore[no-untyped-call]
    model.zero_grad(set_to_none=True)
    return time.perf_counter() - started
