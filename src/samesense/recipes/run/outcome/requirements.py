"""What the settings of a run need of its data: dev pairs to choose on, and rows enough for a learning curve.

Nothing of this imports torch: a run that cannot be is refused at once.
"""

from __future__ import annotations

from samesense.data.examples import Examples
from samesense.errors import ConfigError
from samesense.execution.ranks import world_size
from samesense.recipes.held_out.sets import ComparedSet, Sets
from samesense.recipes.settings import EncoderSettings
from samesense.training.settings import check_stopping

PARTS = ((8, 4), (4, 2), (2, 1))
"""Parts of a learning curve: an eighth four times, a quarter twice, a half once. Denominators, and how many parts."""

COST = sum(times / denominator for denominator, times in PARTS)
"""Cost of all parts together, in runs on all data."""

FEWEST = 32
"""Fewest rows of the smallest part: two batches of the usual size."""


def check_requirements(settings: EncoderSettings, data: Examples, sets: Sets, *, concludes: bool = True) -> None:
    """Raise ConfigError for an early stop, a merge or a learning curve that the data do not allow.

    A run that ``concludes`` ends with a verdict; others are a part of something larger, and have no learning curve.
    """
    check_stopping(settings, has_dev=sets.selecting is not None)
    if settings.merge and sets.selecting is None:
        raise ConfigError("`merge` chooses between start and end on dev, and there is none. Give dev, or leave it out.")
    if settings.learning_curve and concludes:
        _check_learning_curve(data, sets)


def _check_learning_curve(data: Examples, sets: Sets) -> None:
    """Raise ConfigError if there are no pairs to evaluate on, or too few rows to split."""
    if world_size() > 1:
        raise ConfigError("`learning_curve` trains one model after the other, in one process. Leave torchrun out.")
    if not isinstance(sets.verdict, ComparedSet):
        reason = sets.reason or "sections of documents are no pairs. Give `test` FILE"
        raise ConfigError(f"`learning_curve` needs pairs to evaluate on, and {reason}.")
    smallest = len(data) // PARTS[0][0]
    if smallest < FEWEST:
        raise ConfigError(
            f"`learning_curve` trains on an eighth of the data, {FEWEST} rows at least; received {len(data)} rows. "
            "Give more data, or leave it out."
        )
    data.take(range(smallest))  # raises for data of several kinds, which cannot be split
