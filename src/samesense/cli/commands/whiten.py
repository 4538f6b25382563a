"""``samesense whiten``: a model with uncorrelated dimensions, as a new folder."""

from __future__ import annotations

from typing import Any

from samesense.api import use
from samesense.cli.command import command_of
from samesense.cli.output import Output, Several, logger


@command_of(use.whiten)
def whiten(model: str, texts: Several, /, *, output: Output, **options: Any) -> None:
    """samesense whiten default train.tsv --dim 256 --output models/whitened"""
    whitening = use.whiten(model, texts, output=output, **options)
    before, after = whitening.matrix.shape
    empty = f", {whitening.empty} of them without variance," if whitening.empty else ""
    logger.info(f"{output}: fitted on {whitening.n} texts, from {before} dimensions{empty} to {after}")
