"""Rows without a text that can be used: left out on request, and said to be, so that nothing is lost unseen."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from samesense.errors import DataError

logger = logging.getLogger(__name__)

SHOWN = 10
"""Rows of which the numbers are shown."""


def say_left_out(
    source: str, numbers: Sequence[int], total: int, why: str = "they hold no text that can be used"
) -> None:
    """Warn of the rows with these numbers, which are left out of so many; DataError if that is all of them."""
    if not numbers:
        return
    shown = ", ".join(map(str, numbers[:SHOWN])) + (f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else "")
    if len(numbers) == total:
        raise DataError(f"{source}: no row is left of {total}, because {why}: {shown}. Give a file with texts.")
    logger.warning(f"{source}: {len(numbers)} of {total} rows left out, because {why}: {shown}")
