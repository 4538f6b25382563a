"""Warns of rows without a usable text that are left out on request, so that nothing is lost silently."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from samesense.errors import DataError

logger = logging.getLogger(__name__)

SHOWN = 10
"""Most row numbers that a message shows."""


def warn_left_out(
    source: str, numbers: Sequence[int], total: int, reason: str = "they hold no text that can be used"
) -> None:
    """Warn that the rows with these numbers are left out; DataError if that is all ``total`` rows."""
    if not numbers:
        return
    listed = ", ".join(map(str, numbers[:SHOWN]))
    if len(numbers) > SHOWN:
        listed += f" and {len(numbers) - SHOWN} more"
    if len(numbers) == total:
        raise DataError(f"{source}: no row is left of {total}, because {reason}: {listed}. Give a file with texts.")
    logger.warning(f"{source}: {len(numbers)} of {total} rows left out, because {reason}: {listed}")
