"""``samesense pretrain``: continued pretraining of a language model on the documents of a domain."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import Parameter

from samesense.cli.flags import flags
from samesense.cli.output import (
    DEFAULT_FORMAT,
    RERUN_WITH_FLAG,
    Flag,
    Output,
    Several,
    TableFlags,
    logger,
    on_interrupt,
    reads_tables,
)
from samesense.execution.progress import stage
from samesense.recipes.pretrain.settings import PretrainSettings
from samesense.recipes.settings import bind
from samesense.training.manifest import FILE

Flags: Any = flags({"pretrain": PretrainSettings}, without=("model", "mini_batch_num_tokens"))


@reads_tables
def pretrain(
    documents: Several,
    /,
    *,
    model: str,
    output: Output,
    settings: Annotated[Flags, Parameter(name="*")] = None,
    reading: TableFlags = DEFAULT_FORMAT,
    resume: Flag = False,
    overwrite: Flag = False,
) -> None:
    """Continue pretraining a language model on your documents, before it is trained for similarity.

    samesense pretrain documents/ --model bert-base-uncased --output runs/domain

    Args:
        documents: .txt, .md, .html, .pdf and .docx files,
            folders of them, JSON lines, Parquet, saved datasets or hub names.
        model: model folder or hub name; a masked language model, or a causal one, which becomes bidirectional.
        output: folder of the run; the model is in its folder model.
        settings: single settings.
        resume: resume an interrupted run.
        overwrite: replace an earlier run in the output folder.
    """
    overrides = {} if settings is None else settings.model_dump(exclude_none=True)
    chosen = bind(PretrainSettings, {**overrides, "model": model})
    with stage("loading torch"):
        from samesense.recipes.pretrain.recipe import run
    with on_interrupt(RERUN_WITH_FLAG, output / FILE):
        done = run(documents, chosen, output, resume=resume, overwrite=overwrite)
        if done.output.interrupted:
            raise KeyboardInterrupt
    for line in (*done.lines(), *done.conclusion()):
        logger.info(line)
    logger.info(f"next: samesense train PAIRS --model {output} --output FOLDER")
