"""``samesense origin``: from running documents to a similarity, and why it is what it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from samesense.cli.flags import flags
from samesense.cli.output import GOES_ON, Flag, Json, Output, Several, logger, on_interrupt, put, put_json
from samesense.errors import ConfigError
from samesense.recipes.origin.settings import OriginSettings, choose_origin
from samesense.training.manifest import FILE

if TYPE_CHECKING:
    from pathlib import Path

    from samesense.context.origin.explain import Explanation
    from samesense.context.origin.sampled import Continuations

Flags: Any = flags({"origin": OriginSettings})


def origin(
    documents: Several | None = None,
    /,
    *,
    output: Output,
    config: str = "bank",
    settings: Annotated[Flags, Parameter(name="*")] = None,
    explain: Annotated[tuple[str, str] | None, Parameter(allow_leading_hyphen=True)] = None,
    sampled: Flag = False,
    top: int = 5,
    overwrite: Flag = False,
    json: Json = False,
) -> None:
    """Make a similarity from running documents, without labels, and explain it.

    samesense origin documents/ --output origins/mine

    Args:
        documents: text files, folders of them, JSON lines, Parquet, saved datasets or hub names; none only explains.
        output: folder of the Origin; the same command goes on where an earlier one was stopped.
        config: TOML file of settings, or bank, scaled or paper.
        settings: single settings; they win over the file.
        explain: two sentences; shows which contexts make them similar or different.
        sampled: explain by what the language model itself goes on with, in the place of contexts of the documents.
        top: contexts shown on each side.
        overwrite: replace stages that were made with other inputs.
        json: print the explanation as JSON.
    """
    given = {} if settings is None else settings.model_dump(exclude_none=True)
    if not documents and explain is None:
        raise ConfigError("origin makes a similarity of documents, and none are given; or it explains: --explain A B.")
    if sampled and explain is None:
        raise ConfigError("sampled says how to explain, and nothing is to be explained: --explain A B --sampled.")
    if not documents and given:
        raise ConfigError(
            f"Settings are for the making from documents, and none are given; received {', '.join(given)}."
        )
    if documents:
        chosen = choose_origin(config, given)
        with on_interrupt(GOES_ON, output / FILE):
            from samesense.recipes.origin.recipe import run

            if not run(documents, chosen, output, overwrite=overwrite):
                raise KeyboardInterrupt
        logger.info(f"done: samesense similarity origin:{output} TEXT TEXT")
    if explain is not None:
        told = _sampled(output, explain, top) if sampled else _explained(output, explain, top)
        if json:
            put_json([told.to_dict()])
        else:
            put(told.table())


def _explained(folder: Path, pair: tuple[str, str], top: int) -> Explanation:
    from samesense.context.origin.load import open_origin

    return open_origin(folder).explain(*pair, top=top)


def _sampled(folder: Path, pair: tuple[str, str], top: int) -> Continuations:
    from samesense.context.origin.banked import BankOrigin
    from samesense.context.origin.load import open_origin
    from samesense.context.origin.sampled import sampled

    origin = open_origin(folder)
    if not isinstance(origin, BankOrigin):
        raise ConfigError(f"Continuations are sampled from the language model of a bank; {folder} has none.")
    return sampled(origin.reader, *pair, top=top)
