"""``samesense distil``: from sentences and teachers to a small, fast student, with a report of quality and speed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from samesense.api import training
from samesense.cli.command import command_of
from samesense.cli.flags import flags, given_settings
from samesense.cli.output import (
    RERUN_WITH_FLAG,
    Flag,
    Json,
    Output,
    Several,
    log_conclusion,
    logger,
    on_interrupt,
    put,
    put_json,
)
from samesense.execution.ranks import finish
from samesense.recipes.distil.settings import DistilSettings
from samesense.training.manifest import FILE

Flags: Any = flags({"distil": DistilSettings}, without=("model",))


@command_of(training.distil)
def distil(
    sentences: Several,
    /,
    *,
    output: Output,
    settings: Annotated[Flags, Parameter(name="*")] = None,
    resume: Flag = False,
    overwrite: Flag = False,
    dry_run: Flag = False,
    json: Json = False,
    **options: Any,
) -> None:
    """samesense distil sentences.txt --teacher default --student layers:3 --dev dev.tsv --output runs/small

    Args:
        dry_run: make all checks of the run, print the kind of data, the settings, the number of steps and their
            estimated time, measured on a few, and stop.
        json: print one JSON object per model instead of a table.
    """
    overrides = given_settings(settings)
    student = options.pop("student")
    if student is not None:
        overrides["model"] = student
    name, plan = training.plan_distil(sentences, overrides, **options)
    logger.info(f"data: {plan.train.summary}")
    logger.info(f"settings: {name}{''.join(f', {key} = {value}' for key, value in overrides.items())}")
    if dry_run:
        for line in plan.estimate(output, free=not (resume or overwrite)):
            logger.info(line)
        put_json([plan.settings.model_dump()])
        return
    with on_interrupt(RERUN_WITH_FLAG, output / FILE, resumes=resume):
        done = plan.run(output, resume=resume, overwrite=overwrite)
        if done.output.interrupted:
            raise KeyboardInterrupt
    for line in done.lines():
        logger.info(line)
    if done.report is not None and json:
        put_json([*(asdict(line) for line in done.report.lines), *done.to_dicts()[-1:]])
    elif done.report is not None:
        put(done.report.text())
    log_conclusion(done.conclusion())
    finish()
