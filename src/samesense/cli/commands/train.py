"""``samesense train``: from any kind of supervision to an evaluated model folder."""

from __future__ import annotations

from typing import Annotated, Any

from cyclopts import App, Parameter

from samesense.api import training
from samesense.cli.command import command_of
from samesense.cli.flags import flags, given_settings
from samesense.cli.output import (
    RERUN,
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
from samesense.recipes.methods import METHODS, method_named
from samesense.recipes.planning.plan import plan
from samesense.recipes.reading import READING, Reading
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


def app_of_method(name: str) -> App:
    """Return an application with the settings of one method as flags, for its help; ConfigError if there is none."""
    method_flags: Any = flags({name: method_named(name).settings}, without=WITHOUT)

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
    return app


@command_of(training.train, without=("guard",))
def train(
    data: Several,
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
    """samesense train train.tsv --dev dev.tsv --test test.tsv --output runs/first

    All settings of a method: samesense train --help --method supmpn

    Args:
        dry_run: make all checks of the run, print the kind of data, the settings, the number of steps and their
            estimated time, measured on a few, and stop.
        json: print one JSON object per result, and the verdict last.
    """
    # They are flags of the command, and one object for the library.
    reading = Reading(**{name: options.pop(name) for name in READING})
    planned = plan(data, settings=given_settings(settings), reading=reading, **options)
    for line in planned.lines():
        logger.info(line)
    if dry_run:
        for line in planned.dry_run(output, free=not (resume or overwrite)):
            logger.info(line)
        put_json([planned.settings.model_dump()])
        return
    # A method of several stages resumes by itself, a single training by a flag.
    has_stages = planned.method.has_stages
    with on_interrupt(RERUN if has_stages else RERUN_WITH_FLAG, output / FILE, resumes=resume or has_stages):
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
