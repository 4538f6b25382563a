"""``samesense drift``: compares the neighbours and scores of a new model with those of the old one."""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from samesense.api import use
from samesense.cli.command import command_of
from samesense.cli.output import FileOrInput, Json, logger, put_result, shown_if_unwritten
from samesense.errors import ConfigError


@command_of(use.drift)
def drift(
    old: str,
    new: str,
    /,
    *,
    texts: FileOrInput,
    limit: float | None = None,
    json: Json = False,
    **options: Any,
) -> None:
    """samesense drift default runs/new --texts questions.txt --limit 0.2

    Args:
        limit: exit with 1 if a larger share of the nearest texts has changed, to gate a release.
        json: print one JSON object.
    """
    if limit is not None and not 0 <= limit <= 1:
        raise ConfigError(f"A limit is a share of the neighbours, from 0 to 1; received `limit` {limit:g}.")
    show = partial(put_result, json=json)
    with shown_if_unwritten(show):
        result = use.drift(old, new, texts, **options)
    show(result)
    if limit is not None and result.drift - limit > 1e-9:  # 1 - 0.7 is a little more than 0.3
        logger.error(f"drift {result.drift:.4f} is above the limit {limit:g}")
        sys.exit(1)
