"""``samesense label``: labels for informative pairs, by a model or a person."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from samesense.cli.output import (
    DEFAULT_FORMAT,
    RERUN,
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
    reading: TableFlags = DEFAULT_FORMAT,
    seed: int = 0,
    precision: PrecisionFlag = "auto",
) -> None:
    """Choose informative pairs, and label them: by yourself on a page, or by a better model.

    samesense label texts.txt --output labels.tsv

    samesense label texts.txt --scorer chat:gpt-4o-mini --output labels.tsv

    Args:
        source: texts (a text file with one text a line, a table, documents) to make pairs of; or a table of pairs,
            whose labels are ignored.
        output: file of the labels, .tsv or .jsonl, which train takes; every label is saved at once, and the same
            command resumes.
        scorer: cross-encoder, origin:FOLDER, python-score:module:function, chat:MODEL (an OpenAI-compatible endpoint,
            OPENAI_BASE_URL and OPENAI_API_KEY), or any other model; without one, a page is shown on this machine.
        scale: the labels that a person or a chat model gives.
        pairs: number of pairs to choose.
        pairs_by: bands: evenly over the scores of the model; neighbours: near texts; disagreement: as bands, and first
            those on which --model and --other are furthest apart; random.
        model: encoder that chooses: model folder, output of train, hub name, or default.
        other: the model to compare with, for disagreement.
        max_calls: most requests to a chat endpoint, retries included.
        port: port of the page; 0 takes a free one.
        seed: seed of all random choices.
    """
    import samesense

    with on_interrupt(RERUN, Path(output)):
        labelled = samesense.label(
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
    logger.info(str(labelled))
