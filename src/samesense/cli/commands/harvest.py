"""``samesense harvest``: sentence pairs of an Origin's corpus with its scores, to train a Surrogate on."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from samesense.api import training
from samesense.cli.command import command_of
from samesense.cli.flags import flags, given_settings
from samesense.cli.output import RERUN, Output, on_interrupt, put
from samesense.execution.shards.job import MANIFEST
from samesense.recipes.harvest.settings import HarvestSettings

Flags: Any = flags({"harvest": HarvestSettings})


@command_of(training.harvest)
def harvest(*, output: Output, settings: Annotated[Flags, Parameter(name="*")] = None, **options: Any) -> None:
    """samesense harvest --origin origins/mine --pairs 100000 --output harvests/mine --workers 4"""
    with on_interrupt(RERUN, output / MANIFEST):
        put(str(training.harvest(output=output, **options, **given_settings(settings)).folder))
