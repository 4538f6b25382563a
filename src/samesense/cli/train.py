"""``samesense train``: from any kind of supervision to an evaluated model folder."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from samesense.cli.flags import flags
from samesense.cli.output import (
    DEFAULT_FORMAT,
    DEFAULT_PAIRS,
    RERUN,
    RERUN_WITH_FLAG,
    Flag,
    Json,
    Output,
    PairFlags,
    Several,
    TableFlags,
    log_conclusion,
    logger,
    on_interrupt,
    put,
    put_json,
    reads_tables,
)
from samesense.errors import ConfigError
from samesense.execution.ranks import finish
from samesense.recipes.methods import METHODS
from samesense.recipes.reading import READING, Reading
from samesense.recipes.train import plan
from samesense.training.manifest import FILE

SHOWN = (
    "model",
    "loss",
    "learning_rate",
    "epochs",
    "max_steps",
    "batch_size",
    "max_seq_length",
    "eval_steps",
    "seed",
    "guard",
    "merge",
)
"""Settings in the help of the command; the others are in the help of each method."""

WITHOUT = (*READING, "parts")
"""Settings that are flags of the command itself, or can only be set in a file."""

Flags: Any = flags({name: method.settings for name, method in METHODS.items()}, without=WITHOUT, listed=SHOWN)


def help_of_method(name: str, console: Any = None) -> None:
    """Print all settings of one method; ConfigError if there is no such method."""
    if name not in METHODS:
        raise ConfigError(f"The methods are {', '.join(METHODS)}; received {name!r}.")
    method_flags: Any = flags({name: METHODS[name].settings}, without=WITHOUT)

    def settings(*, settings: Any = None) -> None:
        pass

    # set here: cyclopts could not resolve a string annotation that names a local variable
    settings.__annotations__["settings"] = Annotated[method_flags, Parameter(name="*")]
    app = App(
        name=f"samesense train --method {name}",
        help=f"All settings of {name}.",
        help_format="plaintext",
        help_flags=(),
        version_flags=(),
    )
    app.default(settings)
    app.help_print([], console=console)


@reads_tables
def train(
    data: Several,
    /,
    *,
    output: Output,
    method: str = "auto",
    dev: str = "auto",
    test: str | None = None,
    config: str = "auto",
    settings: Annotated[Flags, Parameter(name="*")] = None,
    pair_options: PairFlags = DEFAULT_PAIRS,
    reading: TableFlags = DEFAULT_FORMAT,
    folds: str = "auto",
    resume: Flag = False,
    overwrite: Flag = False,
    dry_run: Flag = False,
    json: Json = False,
) -> None:
    """Train a model from labelled pairs, anchors with positives and negatives, unlabelled sentences, or documents.

    samesense train train.tsv --dev dev.tsv --test test.tsv --output runs/first

    samesense train --help --method supmpn shows all settings of a method.

    Args:
        data: one or more files (TSV, CSV, JSON lines, Parquet, text; plain or compressed), saved datasets folders, or
            hub names; for surrogate a folder of samesense harvest.
        output: folder of the run; the model is in its folder model.
        method: cosent, supmpn, simcse, rankcse, sections, surrogate, context, which goes from documents to a
            surrogate, or mixed; auto is rankcse with a teacher, mixed for data of several kinds, and else the method
            for the kind of data in the first rows.
        dev: pairs that select the checkpoint; auto holds some out, or leaves it to folds; or "hold 0.1"; none keeps the
            last.
        test: pairs for evaluation before and after, or "hold 0.2" of those trained on; else dev or folds.
        config: TOML file of settings, or a shipped one by name; auto takes the paper's.
        settings: single settings; they win over the file.
        folds: auto cross-validates few labelled pairs; or the number of folds, 10-mixed for random ones, by-topic,
            none.
        resume: resume an interrupted run.
        overwrite: replace an earlier run in the output folder.
        dry_run: make all checks of the run, print the kind of data, the settings, the number of steps and their
            estimated time, measured on a few, and stop.
        json: print one JSON object a result, and the verdict last.
    """
    planned = plan(
        data,
        method=method,
        dev=dev,
        test=test,
        config=config,
        folds=folds,
        settings={} if settings is None else settings.model_dump(exclude_none=True),
        reading=Reading(**vars(pair_options)),
    )
    for line in planned.lines():
        logger.info(line)
    if dry_run:
        for line in planned.dry_run(output, free=not (resume or overwrite)):
            logger.info(line)
        put_json([planned.settings.model_dump()])
        return
    with on_interrupt(RERUN if planned.method.has_stages else RERUN_WITH_FLAG, output / FILE):
        trained = planned.run(output, resume=resume, overwrite=overwrite)
        if trained.output.interrupted:
            raise KeyboardInterrupt
    for line in trained.lines():
        logger.info(line)
    if json:
        put_json(trained.to_dicts())
    elif trained.results:
        put(str(trained.results))
    log_conclusion(trained.conclusion())
    finish()
