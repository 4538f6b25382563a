"""``samesense origin``: from running documents to a similarity."""

from __future__ import annotations

from shlex import quote
from typing import Annotated, Any

from cyclopts import Parameter

from samesense.api import training
from samesense.cli.command import command_of
from samesense.cli.flags import flags, given_settings
from samesense.cli.output import RERUN, Output, Several, logger, on_interrupt
from samesense.recipes.origin.settings import OriginSettings
from samesense.training.manifest import FILE

Flags: Any = flags({"origin": OriginSettings})


@command_of(training.origin)
def origin(
    documents: Several,
    /,
    *,
    output: Output,
    settings: Annotated[Flags, Parameter(name="*")] = None,
    **options: Any,
) -> None:
    """samesense origin documents/ --output origins/mine"""
    with on_interrupt(RERUN, output / FILE):
        training.origin(documents, output=output, **options, **given_settings(settings))
    name = f"origin:{output}"
    logger.info(f"done: samesense similarity {quote(name)} TEXT TEXT; samesense explain {quote(name)} TEXT TEXT")
