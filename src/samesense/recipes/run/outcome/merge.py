"""Interpolates the weights between start and end, chosen on dev, to gain on the task at less cost elsewhere.

Source: Wortsman et al. (2022), "Robust fine-tuning of zero-shot models" (WiSE-FT), with a grid of tenths; Xiao et al.
    (2023), "LM-Cocktail: resilient tuning of language models via model merging", of one model and its base.
Differs: the mixing weight is chosen by Spearman on dev, where WiSE-FT reports all and recommends a half. A weight of 0,
    the start itself, is not tried: a run keeps its training.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from torch import Tensor

from samesense.encoder.assembly.merge import copy_weights, interpolate
from samesense.errors import ConfigError, DataError, ModelError
from samesense.execution.progress import progress_bar
from samesense.inference.models.load import load
from samesense.recipes.held_out.sets import VerdictSet
from samesense.reports.run_verdict import Merged, compare
from samesense.types import TaskResult

WEIGHTS = tuple(tenth / 10 for tenth in range(1, 11))
"""Mixing weights to try: 1 is the end, 0 would be the start."""


def check_merge(*, new_head: bool) -> None:
    """Raise ConfigError if there is no usable start."""
    if new_head:
        raise ConfigError(
            "`merge` interpolates towards a start that works, and a model with a new head does not. Begin with a "
            "cross-encoder that has a head, take another `head` than kept, or leave `merge` out."
        )


def merge(
    model: Any,
    start: Mapping[str, Tensor],
    dev_score: Callable[[Any], float],
    first: VerdictSet | None,
) -> Merged:
    """Set a trained model to the interpolation between ``start`` and its own weights that is best on dev.

    Ties go to the largest mixing weight. On the ``first`` set, if there is one, the merged model is compared with the
    end.
    """
    end = copy_weights(model)
    dev: dict[float, float] = {}
    with progress_bar("merge", "share", len(WEIGHTS), leave=False) as bar:
        for weight in reversed(WEIGHTS):
            interpolate(model, start, end, weight)
            dev[weight] = _score(dev_score, model)
            bar.update()
    best = max(dev, key=lambda weight: (dev[weight], weight))
    beside = None
    if best < 1 and first is not None:
        with suppress(DataError, ModelError):  # without a figure there is nothing to compare
            interpolate(model, start, end, 1.0)
            end_result = _evaluated(first, model, "the end")
            interpolate(model, start, end, best)
            beside = compare(
                first.role,
                end_result,
                _evaluated(first, model, "merged"),
                description=first.description,
                against="the end",
            )
    # Again, as an error above may have left the weights of the end.
    interpolate(model, start, end, best)
    return Merged(share=best, dev={str(weight): dev[weight] for weight in sorted(dev)}, beside_end=beside)


def _score(dev_score: Callable[[Any], float], model: Any) -> float:
    """Return the dev score; the lowest possible for a model without one."""
    try:
        return dev_score(model)
    except (DataError, ModelError):
        return -1.0


def _evaluated(compared_set: VerdictSet, model: Any, name: str) -> TaskResult:
    return compared_set.task.evaluate(load(model, name=name, precision="float32"))
