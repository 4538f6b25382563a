"""Progress bars: shown by a command on a terminal, or where a library user has asked for messages."""

from __future__ import annotations

import logging
import sys
from typing import Any

from samesense.execution.ranks import is_main


def progress_bar(desc: str, unit: str, total: int | None = None, *, initial: int = 0, **how: Any) -> Any:
    """Return a tqdm bar on standard error: what is done (``desc``), counted in ``unit``, ``initial`` of it before.

    It is shown if standard error is a terminal, this is the main process, and the logger ``samesense`` lets messages of
    level INFO through: the command does, and a library user does with ``logging.basicConfig(level="INFO")``.
    """
    from tqdm.auto import tqdm

    shown = sys.stderr.isatty() and is_main() and logging.getLogger("samesense").isEnabledFor(logging.INFO)
    # smoothing: batches are sorted by length, so that the speed of the last ones says little of the rest
    how = {"smoothing": 0.02, "disable": not shown, "file": sys.stderr, **how}
    return tqdm(total=total, initial=initial, desc=desc, unit=unit, **how)
