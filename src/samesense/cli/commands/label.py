"""``samesense label``: labels for informative pairs, by a model or a person."""

from __future__ import annotations

from typing import Any

from samesense.api import label as api
from samesense.cli.command import command_of
from samesense.cli.output import RERUN, Output, logger, on_interrupt


@command_of(api.label)
def label(source: str, /, *, output: Output, **options: Any) -> None:
    """samesense label texts.txt --output labels.tsv

    samesense label texts.txt --scorer chat:gpt-4o-mini --output labels.tsv
    """
    with on_interrupt(RERUN, output):
        labelled = api.label(source, output=output, **options)
    logger.info(str(labelled))
