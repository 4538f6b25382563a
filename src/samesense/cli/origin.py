"""``samesense origin``: from running documents to a similarity."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from samesense.cli.flags import flags
from samesense.cli.output import (
    DEFAULT_FORMAT,
    RERUN,
    Flag,
    Output,
    Several,
    TableFlags,
    logger,
    on_interrupt,
    reads_tables,
)
from samesense.recipes.origin.settings import OriginSettings, choose_origin
from samesense.recipes.origin.stages import check_origin
from samesense.training.manifest import FILE

Flags: Any = flags({"origin": OriginSettings})


@reads_tables
def origin(
    documents: Several,
    /,
    *,
    output: Output,
    config: str = "words",
    settings: Annotated[Flags, Parameter(name="*")] = None,
    reading: TableFlags = DEFAULT_FORMAT,
    overwrite: Flag = False,
) -> None:
    """Make a similarity from running documents, without labels.

    samesense origin documents/ --output origins/mine

    Args:
        documents: .txt, .md, .html, .pdf and .docx files,
            folders of them, JSON lines, Parquet, saved datasets or hub names.
        output: folder of the Origin; the same command resumes one that was stopped.
        config: TOML file of settings, or words, scaled or paper.
        settings: single settings; they win over the file.
        overwrite: replace stages that were made with other inputs.
    """
    overrides = {} if settings is None else settings.model_dump(exclude_none=True)
    chosen = choose_origin(config, overrides)
    check_origin(documents, chosen, output)
    with on_interrupt(RERUN, output / FILE):
        from samesense.recipes.origin.recipe import run

        if not run(documents, chosen, output, overwrite=overwrite):
            raise KeyboardInterrupt
    logger.info(f"done: samesense similarity origin:{output} TEXT TEXT; samesense explain origin:{output} TEXT TEXT")
