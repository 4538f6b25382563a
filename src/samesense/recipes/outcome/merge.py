"""Weights between start and end, chosen on dev: what is gained in the task may cost less elsewhere.

Source: Wortsman et al. (2022), "Robust fine-tuning of zero-shot models" (WiSE-FT), with a grid of tenths; Xiao et al.
    (2023), "LM-Cocktail: resilient tuning of language models via model merging", of one model and its base.
Differs: the share is chosen by Spearman on dev, where WiSE-FT shows all and recommends a half. A share of 0, the start
    itself, is not tried: a run keeps what it has trained.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from torch import Tensor

from samesense.encoder.assembly.merge import interpolate, weights_of
from samesense.errors import ConfigError, DataError, ModelError
from samesense.execution.progress import progress_bar
from samesense.inference.models.load import load
from samesense.recipes.outcome.section_set import SectionSet
from samesense.recipes.outcome.sets import ComparedSet, Sets
from samesense.reports.run_verdict import Merged, compare
from samesense.types import TaskResult

SHARES = tuple(tenth / 10 for tenth in range(1, 11))
"""Shares of the way from the start to the end that are tried."""


def check_merge(sets: Sets, *, new_head: bool) -> None:
    """Raise ConfigError if there is nothing to choose by, or no start to go back to."""
    if sets.selecting is None:
        raise ConfigError("`merge` chooses between start and end on dev, and there is none. Give dev, or leave it out.")
    if new_head:
        raise ConfigError(
            "`merge` goes from the end back towards a start that works, and a model with a new head is none. Begin "
            "with a cross-encoder that has a head, take another `head` than kept, or leave `merge` out."
        )


def merge(
    model: Any,
    start: Mapping[str, Tensor],
    dev_score: Callable[[Any], float],
    first: ComparedSet | SectionSet | None,
) -> Merged:
    """Give a trained model the weights between ``start`` and its own that are the best on dev.

    Of shares that are equal on dev the largest is taken. On the ``first`` set, where there is one, the merged model is
    compared with the end.
    """
    end = weights_of(model)
    dev: dict[float, float] = {}
    with progress_bar("merge", "share", len(SHARES), leave=False) as bar:
        for share in reversed(SHARES):
            interpolate(model, start, end, share)
            dev[share] = _score(dev_score, model)
            bar.update()
    best = max(dev, key=lambda share: (dev[share], share))
    beside = None
    if best < 1 and first is not None:
        with suppress(DataError, ModelError):  # no figure, nothing to compare
            interpolate(model, start, end, 1.0)
            end_result = _evaluated(first, model, "the end")
            interpolate(model, start, end, best)
            beside = compare(
                first.role, end_result, _evaluated(first, model, "merged"), description=first.how, against="the end"
            )
    interpolate(model, start, end, best)
    return Merged(share=best, dev={str(share): dev[share] for share in sorted(dev)}, beside_end=beside)


def _score(dev_score: Callable[[Any], float], model: Any) -> float:
    """Return the dev score; that of a model without one is the lowest."""
    try:
        return dev_score(model)
    except (DataError, ModelError):
        return -1.0


def _evaluated(compared_set: ComparedSet | SectionSet, model: Any, name: str) -> TaskResult:
    return compared_set.task.evaluate(load(model, name=name, precision="float32"))
