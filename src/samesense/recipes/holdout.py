"""Hold out pairs for selection where the user has given no dev set."""

from __future__ import annotations

from samesense.data import PairData
from samesense.errors import DataError

SHARE = 0.1
"""Share of the training pairs that is held out."""


def hold_out(train: PairData, seed: int) -> tuple[PairData, PairData]:
    """Split a dev set off the training pairs, no pair standing in both.

    Raises:
        DataError: if what is held out has one label only and could not select anything.
    """
    rest, dev = train.split(SHARE, seed)
    if len(set(dev.labels)) < 2 or len(set(rest.labels)) < 2:
        raise DataError(
            f"Holding out {SHARE:.0%} of {len(train)} pairs gives {len(dev)} for selection, and one side has one label "
            "only. Give --dev FILE, or --dev none to keep the last state."
        )
    return rest, dev
