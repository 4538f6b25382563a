"""``samesense sweep``: many training runs from one file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from samesense.api import training
from samesense.cli.command import command_of
from samesense.cli.output import RERUN, Flag, Json, Output, logger, named_values, on_interrupt, put
from samesense.data.rows.sources import missing_file_error
from samesense.errors import ConfigError
from samesense.failures import abridged
from samesense.places import holding

if TYPE_CHECKING:
    from samesense.recipes.sweep.plan import Plan


@command_of(training.sweep)
def sweep(
    file: Path,
    /,
    *,
    output: Output | None = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", consume_multiple=True, negative="")] = None,
    table: Flag = False,
    dry_run: Flag = False,
    json: Json = False,
    **options: Any,
) -> None:
    """samesense sweep losses.toml --output sweeps/losses

    Args:
        file: TOML file of the sweep; with --table also the folder of one.
        set_: values of placeholders of the file, as in: DATA=data START=models/base
        table: write tables and report of the finished runs, and run nothing.
        dry_run: check everything, list the runs, and stop.
        json: print one JSON object per finished run and test set instead of tables.
    """
    folder = _folder_of_sweep(file, output, table=table)
    files = OutputFiles(options.pop("latex"), options.pop("figures"))
    if table:
        _refuse({"set": set_, "dry_run": dry_run, **options, "jobs": options["jobs"] != "auto"})
        files.check([])
        with holding(files.latex, files.figures):
            _show(folder, json, files)
        return
    if not file.is_file():  # before torch is loaded, which takes seconds
        raise missing_file_error(str(file))
    from samesense.recipes.sweep.run import PLAN, datasets_of, describe, run

    plan = _make_plan(file, dict(named_values("--set", set_)), folder, files, options)
    selected = datasets_of(plan, options["datasets"])
    for line in describe(plan):
        logger.info(line)
    if dry_run:
        _list_runs(plan, selected, folder)
        return
    with holding(files.latex, files.figures), on_interrupt(RERUN, folder / PLAN):
        ended = run(plan, folder, **options)
        if ended.interrupted:
            # The tables of the finished runs, before the message that they can be resumed.
            _show(folder, json, files)
            logger.info(f"stopped with {ended.finished} runs finished")
            # Exit code 130, as for Ctrl-C in any other command.
            raise KeyboardInterrupt
        _show(folder, json, files)
    if ended.failed:
        logger.info(
            f"{ended.failed} of {ended.finished + ended.failed} runs failed; the same command tries them again."
        )
        # Some of the work failed.
        sys.exit(1)


def _folder_of_sweep(file: Path, output: Path | None, *, table: bool) -> Path:
    """Return the folder of a sweep; ConfigError if there is none, or no file from which runs could be made."""
    folder = output
    if folder is None and (table or file.is_dir()):
        folder = file
    # A folder has no file of settings from which runs could be made.
    if folder is None or (file.is_dir() and not table):
        raise ConfigError(
            "A sweep is run from a file into a folder: samesense sweep FILE --output FOLDER. "
            "The tables of one: samesense sweep FOLDER --table."
        )
    return folder


def _make_plan(
    file: Path, placeholders: Mapping[str, str], folder: Path, files: OutputFiles, options: Mapping[str, Any]
) -> Plan:
    """Check all that can be checked before the runs, which may take days, and plan them."""
    from samesense.recipes.sweep.file import read_sweep
    from samesense.recipes.sweep.pace import check_max_runs
    from samesense.recipes.sweep.plan import make_plan
    from samesense.recipes.sweep.run import check_output
    from samesense.recipes.sweep.workers import check_jobs

    check_jobs(options["jobs"])
    check_max_runs(options["max_runs"])
    check_output(folder)
    sweep_file = read_sweep(file, placeholders)
    files.check([file, *sweep_file.sources()])
    return make_plan(sweep_file)


def _refuse(idle: Mapping[str, object]) -> None:
    """Raise ConfigError if a flag is given that has no effect with --table."""
    name = next((name for name, value in idle.items() if value), None)
    if name is not None:
        raise ConfigError(f"`table` shows the tables of a sweep and runs nothing; received `{name}`. Leave it out.")


def _list_runs(plan: Plan, datasets: set[str], folder: Path) -> None:
    """Print every run and whether it is finished."""
    from samesense.recipes.sweep.cell import status_of

    for cell in (cell for cell in plan.every if cell.dataset in datasets):
        status = "to run"  # also of one that failed or was interrupted
        if status_of(cell.folder(folder)) == "finished":
            status = "finished"
        put(f"{status}: {cell.name}")
    if plan.tuning:
        logger.info("then every seed of what is tuned, at what is the best on dev")


@dataclass(frozen=True)
class OutputFiles:
    """Paths of the LaTeX tables and of the figures, besides the folder of the sweep."""

    latex: Path | None
    figures: Path | None

    def check(self, inputs: Sequence[str | Path]) -> None:
        """Raise, before the work, if an output cannot be written, or would overwrite an input."""
        from samesense.places import check_folder, check_place, check_suffix

        outputs = []
        if self.figures is not None:
            from samesense.reports.figures.plot import need_matplotlib

            need_matplotlib()
            outputs.append(self.figures / "learning.svg")
        if self.latex is not None:
            outputs.append(self.latex)
        for path in outputs:
            if path.parent.exists():
                check_place(path, inputs)
            else:
                # Not made yet: it may lie in the folder of the sweep, which begins empty.
                check_folder(path.parent)
        if self.latex is not None:
            check_suffix(self.latex, "A file of LaTeX", [".tex"])


def _show(folder: Path, json: bool, files: OutputFiles) -> None:
    from samesense.recipes.sweep.report import write_report

    text, written = write_report(folder, latex=files.latex, figures=files.figures)
    if json:
        text = (folder / "results.jsonl").read_text(encoding="utf-8")
    put(text.rstrip())
    logger.info(f"written: {abridged(written, 5)}")
