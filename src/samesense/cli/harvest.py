"""``samesense harvest``: sentence pairs of an Origin's corpus with its scores, to train a Surrogate on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from samesense.cli.flags import flags
from samesense.cli.output import RERUN, Output, on_interrupt, put
from samesense.execution.sharded import MANIFEST
from samesense.recipes.harvest.settings import HarvestSettings
from samesense.recipes.settings import bind, read_settings

Flags: Any = flags({"harvest": HarvestSettings})


def harvest(
    *, origin: Path, output: Output, config: str | None = None, settings: Annotated[Flags, Parameter(name="*")] = None
) -> None:
    """Score sentence pairs of an Origin's own corpus, at scale and resumably, to train a fast model on.

    samesense harvest --origin origins/mine --pairs 100000 --output harvests/mine --workers 4

    Args:
        origin: folder of the Origin.
        output: folder of the harvest; the same command resumes one that was stopped.
        config: TOML file of settings.
        settings: single settings; they win over the file.
    """
    overrides = {} if settings is None else settings.model_dump(exclude_none=True)
    chosen = bind(HarvestSettings, {} if config is None else read_settings(config), overrides)
    from samesense.recipes.harvest.recipe import harvest as make

    with on_interrupt(RERUN, output / MANIFEST):
        put(str(make(origin, output, chosen).folder))
