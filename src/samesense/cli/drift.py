"""``samesense drift``: compares the neighbours and scores of a new model with those of the old one."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from samesense.cli.output import (
    DEFAULT_FORMAT,
    Json,
    PrecisionFlag,
    TableFlags,
    TextColumns,
    Threshold,
    logger,
    put,
    put_json,
    reads_tables,
)
from samesense.errors import ConfigError


@reads_tables
def drift(
    old: str,
    new: str,
    /,
    *,
    texts: Annotated[str, Parameter(allow_leading_hyphen=True)],
    pairs: str | None = None,
    threshold: Annotated[Threshold | None, Parameter(allow_leading_hyphen=True)] = None,
    top: int = 10,
    queries: int = 1000,
    limit: float | None = None,
    columns: TextColumns = None,
    reading: TableFlags = DEFAULT_FORMAT,
    precision: PrecisionFlag = "auto",
    json: Json = False,
) -> None:
    """Report what a new model changes: neighbours, scores, the threshold, and the texts that moved most.

    samesense drift default runs/new --texts questions.txt --limit 0.2

    Args:
        old: the model in use: folder, output of train, hub name, or default.
        new: its successor.
        texts: file of typical texts, one a line, a table, or - for lines of standard input.
        pairs: labelled pairs, 1 for a yes and 0 for a no, on which the new threshold has the precision of the old one.
        threshold: threshold of the old model, or calibrated for that of its calibration; with --pairs, by default that
            of best F1. Without pairs, the new threshold is the one that as many pairs of neighbours reach.
        top: number of nearest texts to compare.
        queries: number of texts whose neighbours are searched among all.
        limit: exit with 1 if a larger share of the nearest texts has changed, to gate a release.
        json: print one JSON object.
    """
    import samesense
    from samesense.data.texts import read_texts

    if limit is not None and not 0 <= limit <= 1:
        raise ConfigError(f"A limit is a share of the neighbours, from 0 to 1; received `limit` {limit:g}.")
    result = samesense.drift(
        old,
        new,
        read_texts(texts, columns),
        pairs=pairs,
        threshold=threshold,
        top=top,
        queries=queries,
        precision=precision,
    )
    if json:
        put_json([result.to_dict()])
    else:
        put(str(result))
    if limit is not None and result.drift - limit > 1e-9:  # 1 - 0.7 is a little more than 0.3
        logger.error(f"drift {result.drift:.4f} is above the limit {limit:g}")
        sys.exit(1)
