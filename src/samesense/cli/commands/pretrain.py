"""``samesense pretrain``: continued pretraining of a language model on the documents of a domain."""

from __future__ import annotations

from shlex import quote
from typing import Annotated, Any

from cyclopts import Parameter

from samesense.api import training
from samesense.cli.command import command_of
from samesense.cli.flags import flags, given_settings
from samesense.cli.output import RERUN_WITH_FLAG, Output, Several, logger, on_interrupt
from samesense.recipes.pretrain.settings import PretrainSettings
from samesense.training.manifest import FILE

Flags: Any = flags({"pretrain": PretrainSettings}, without=("model", "mini_batch_num_tokens"))


@command_of(training.pretrain)
def pretrain(
    documents: Several,
    /,
    *,
    output: Output,
    settings: Annotated[Flags, Parameter(name="*")] = None,
    **options: Any,
) -> None:
    """samesense pretrain documents/ --model bert-base-uncased --output runs/domain"""
    with on_interrupt(RERUN_WITH_FLAG, output / FILE, resumes=options["resume"]):
        done = training.pretrain(documents, output=output, **options, **given_settings(settings))
        if done.output.interrupted:
            raise KeyboardInterrupt
    for line in (*done.lines(), *done.conclusion()):
        logger.info(line)
    logger.info(f"next: samesense train PAIRS --model {quote(str(output))} --output FOLDER")
