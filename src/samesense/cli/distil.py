"""``samesense distil``: from sentences and teachers to a small, fast student, with a report of quality and speed."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from cyclopts import Parameter

from samesense.cli.flags import flags
from samesense.cli.output import (
    DEFAULT_FORMAT,
    RERUN_WITH_FLAG,
    Flag,
    Json,
    Output,
    Several,
    TableFlags,
    log_conclusion,
    logger,
    on_interrupt,
    put,
    put_json,
    reads_tables,
)
from samesense.data import read_pairs
from samesense.execution.progress import stage
from samesense.execution.ranks import finish
from samesense.recipes.distil.settings import DistilSettings, choose_distil
from samesense.recipes.unsupervised.settings import read_bare
from samesense.training.manifest import FILE

Flags: Any = flags({"distil": DistilSettings}, without=("model",))


@reads_tables
def distil(
    sentences: Several,
    /,
    *,
    output: Output,
    student: str | None = None,
    dev: str | None = None,
    test: Several | None = None,
    config: str = "auto",
    settings: Annotated[Flags, Parameter(name="*")] = None,
    reading: TableFlags = DEFAULT_FORMAT,
    resume: Flag = False,
    overwrite: Flag = False,
    dry_run: Flag = False,
    json: Json = False,
) -> None:
    """Make a small, fast student of one or several teachers, from sentences alone; report what it keeps and gains.

    samesense distil sentences.txt --teacher default --student layers:3 --dev dev.tsv --output runs/small

    Args:
        sentences: text files, tables with text columns, documents, saved datasets folders, or hub names.
        output: folder of the run; the student is in its folder model.
        student: layers:N of the first teacher, static or static:DIM, or a small encoder. [layers:3]
        dev: labelled pairs that select the best checkpoint; none keeps the last one.
        test: labelled pairs on which student and teachers are evaluated; none takes those of dev.
        config: TOML file of settings, or a shipped one by name; auto takes that of the kind of student.
        settings: single settings; they win over the file.
        resume: resume an interrupted run.
        overwrite: replace an earlier run in the output folder.
        dry_run: make all checks of the run, print the kind of data, the settings, the number of steps and their
            estimated time, measured on a few, and stop.
        json: print one JSON object a model instead of a table.
    """
    overrides = {} if settings is None else settings.model_dump(exclude_none=True)
    if student is not None:
        overrides["model"] = student
    name, chosen = choose_distil(config, overrides)
    train = read_bare(sentences, chosen)
    dev_data = None if dev is None else read_pairs(dev)
    tests = [read_pairs(source) for source in test or []]
    logger.info(f"data: {train.summary}")
    with stage("loading torch"):
        from samesense.recipes.distil.recipe import estimate, run

    logger.info(f"settings: {name}{''.join(f', {key} = {value}' for key, value in overrides.items())}")
    if dry_run:
        for line in estimate(train, chosen, output, dev=dev_data, tests=tests, free=not (resume or overwrite)):
            logger.info(line)
        put_json([chosen.model_dump()])
        return
    with on_interrupt(RERUN_WITH_FLAG, output / FILE):
        done = run(train, chosen, output, dev=dev_data, tests=tests, resume=resume, overwrite=overwrite)
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
