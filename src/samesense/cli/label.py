"""``samesense label``: labels for pairs that are worth them, by a model or a person."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from samesense.cli.output import (
    BY_THE_RULES,
    GOES_ON,
    Output,
    PrecisionFlag,
    TableFlags,
    logger,
    on_interrupt,
    reads_tables,
)


@reads_tables
def label(
    source: str,
    /,
    *,
    output: Output,
    scorer: str | None = None,
    scale: Literal["0-5", "yes-no"] = "0-5",
    pairs: int = 200,
    pairs_by: Literal["bands", "neighbours", "disagreement", "random"] = "bands",
    model: str = "default",
    other: str | None = None,
    max_calls: int | None = None,
    port: int = 8000,
    columns: Annotated[str | None, Parameter(help="columns of texts, or left,right,label of pairs, by name")] = None,
    reading: TableFlags = BY_THE_RULES,
    seed: int = 0,
    precision: PrecisionFlag = "auto",
) -> None:
    """Choose pairs that are worth a label, and label them: by yourself on a page, or by a better model.

    samesense label texts.txt --output labels.tsv

    samesense label texts.txt --scorer chat:gpt-4o-mini --output labels.tsv

    Args:
        source: texts (a text file with one text a line, a table, documents), of which pairs are made; or a table of
            pairs, whose labels are not read.
        output: file of the labels, .tsv or .jsonl, which train takes; every label is kept at once, and the same command
            goes on.
        scorer: cross-encoder, origin:FOLDER, python-score:module:function, chat:MODEL (an endpoint as OpenAI has it,
            OPENAI_BASE_URL and OPENAI_API_KEY), or any other model; without one, a page is shown on this machine.
        scale: what a person or a chat model is asked for.
        pairs: how many are chosen.
        pairs_by: bands: evenly over the scores of the model; neighbours: near texts; disagreement: as bands, and first
            those on which --model and --other are furthest apart; random.
        model: what chooses: model folder, output of train, hub name, or default.
        other: what the model is compared with, for disagreement.
        max_calls: requests to a chat endpoint at most, those included that are tried again.
        port: of the page; 0 takes a free one.
        seed: of all that is drawn.
    """
    import samesense

    with on_interrupt(GOES_ON, Path(output)):
        made = samesense.label(
            source,
            output=output,
            scorer=scorer,
            scale=scale,
            pairs=pairs,
            pairs_by=pairs_by,
            model=model,
            other=other,
            max_calls=max_calls,
            port=port,
            columns=columns,
            seed=seed,
            precision=precision,
        )
    logger.info(str(made))
