"""The ``samesense`` program: runs a command, and turns errors into one line and an exit code."""

from __future__ import annotations

import _thread
import os
import re
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from cyclopts import App, CycloptsError, Group, Parameter, Token, convert

import samesense
from samesense import _HOME_OF
from samesense.cli.colour import painted
from samesense.cli.hyphens import mark_literals
from samesense.cli.output import as_flags, show_messages
from samesense.cli.streams import drop_output, flush_output, output_is_broken, replace_closed_streams, write_utf8
from samesense.errors import ConfigError, SamesenseError
from samesense.execution.progress import show_open_progress, stage
from samesense.execution.threads import TOKENIZERS, keep_freed_memory, let_threads_sleep
from samesense.execution.unread import counted
from samesense.failures import system_reason, visible
from samesense.inference.models.optional_deps import needs_torch
from samesense.urls import take_pipes

# Commands import what they use when they run, so that --help and completion stay quick.

HELP = """\
Sentence similarity: train from any supervision, evaluate, put to use.

samesense quickstart

samesense train train.tsv --test test.tsv --output runs/first

samesense compare default runs/first --data test.tsv --output report.html
"""


def convert_strictly(kind: Any, tokens: Sequence[Token]) -> Any:
    """Convert an argument as cyclopts does, but refuse decimals for integers: cyclopts rounds 11.6 to 12."""
    return convert(kind, tokens, _convert_word)


def _convert_word(kind: Any, word: str) -> Any:
    if kind in (int, float):
        return kind(word)
    return convert(kind, [word])


GROUPS = {
    "Train": ("quickstart", "train", "pretrain", "distil", "whiten", "origin", "harvest"),
    "Evaluate": ("evaluate", "compare", "calibrate", "drift", "sweep", "race"),
    "Use": (
        "similarity",
        "score",
        "explain",
        "encode",
        "mine",
        "dedup",
        "match",
        "index",
        "rerank",
        "serve",
        "export",
        "push",
    ),
    "Data": ("doctor", "label", "augment", "mine-negatives"),
}
PANELS = {title: Group(title, sort_key=order) for order, title in enumerate(GROUPS)}

COMMANDS = tuple(name for names in GROUPS.values() for name in names)
"""All commands. Each is a function in a module of the same name in ``commands``, with _ for -."""

LONG = (
    *GROUPS["Train"],
    *GROUPS["Evaluate"],
    *("score", "encode", "mine", "dedup", "match", "index", "export", "push", "label", "mine-negatives"),
)
"""Commands that may take long, and show their progress."""

TRAINING = ("quickstart", "train", "pretrain", "distil", "sweep", "race")
"""Commands that train; they reuse freed memory from step to step."""

START_OVER = "Nothing half-written is left: give the same command again."
"""How to continue after Ctrl-C, where a command does not say it better."""


RESENT_AFTER = 0.05
"""Seconds after which a Ctrl-C that Python swallowed is sent again."""


def make_app(*, overview: bool = False) -> App:
    """Return the program; for an overview of its commands, with their summaries.

    A command is imported when it runs.
    """
    program = App(
        name="samesense",
        version=lambda: samesense.__version__,
        help=HELP,
        help_format="plaintext",
        default_parameter=Parameter(converter=convert_strictly),
        suppress_keyboard_interrupt=False,  # main says how to go on
    )
    program.register_install_completion_command(
        help="Complete commands and flags in this shell (bash, zsh, fish).", group="Shell"
    )
    for order, (title, names) in enumerate(GROUPS.items()):
        for name in names:
            module = name.replace("-", "_")
            summary = summary_of(name) if overview else None
            path = f"samesense.cli.commands.{module}:{module}"
            program.command(path, name=name, help=summary, group=PANELS[title], sort_key=order)
    return program


def summary_of(command: str) -> str:
    """Return the first paragraph of the docstring of a command's function, or of its module where it has none.

    It is found in the source, since an import of all modules would double the time of ``samesense --help``.
    """
    name = command.replace("-", "_")
    module = _HOME_OF.get(name, f"samesense.cli.commands.{name}").removeprefix("samesense.").replace(".", "/")
    source = Path(__file__).parents[1].joinpath(f"{module}.py").read_text(encoding="utf-8")
    function = re.search(rf"^def {name}\(", source, re.MULTILINE)
    # Without such a function, the first docstring of the file is that of the module.
    if function is not None:
        source = source[function.start() :]
    docstring = source.partition('"""')[2]
    return " ".join(docstring.partition('"""')[0].partition("\n\n")[0].split())


LEAST_COLUMNS = 20
"""Width from which on a help can be wrapped."""

app = make_app()


def main(arguments: list[str] | None = None) -> None:
    """Run a command: exit code 0 on success, 1 if some of the work failed, 2 on misuse or bad input, 130 on Ctrl-C."""
    try:
        # First of all: a file opened before could get the number of a closed stream.
        replace_closed_streams()
        write_utf8()
        _refuse_missing_docstrings()
        _drop_narrow_width()
        # Before their import, at which they read these variables.
        _silence_libraries()
        let_threads_sleep()
        show_messages()
        _run(sys.argv[1:] if arguments is None else arguments)
    except CycloptsError as error:
        from samesense.cli.misuse import explain_error

        _fail(explain_error(error))
    except SamesenseError as error:
        _fail(as_flags(str(error)))
    except KeyboardInterrupt as stop:
        hint = str(stop) or START_OVER
        sys.stderr.write(f"samesense: interrupted. {hint}\n")
        sys.exit(130)
    except Exception as error:
        if isinstance(error, BrokenPipeError) and output_is_broken():
            # Whoever read the output has ended, as head does, which is no failure.
            drop_output()
            sys.exit(0)
        reason = system_reason(error)
        # What pathlib raises for ~name where there is no such user.
        if isinstance(error, RuntimeError) and "home directory" in str(error):
            reason = "~ leads to no home folder. Write the path in full."
        if reason is None:
            raise
        _fail(f"a file or folder cannot be read or written: {reason}")


def _drop_narrow_width() -> None:
    """Leave out a width of the terminal that no help fits in, such as ``COLUMNS=0``: the help would never end."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) < LEAST_COLUMNS:
        del os.environ["COLUMNS"]


def _refuse_missing_docstrings() -> None:
    """Raise ConfigError where Python leaves docstrings out: transformers fails on import, and help is made of them."""
    if sys.flags.optimize >= 2:
        raise ConfigError(
            "Python runs with -OO or PYTHONOPTIMIZE=2, which leaves docstrings out, and transformers needs them. Run "
            "it without, or with PYTHONOPTIMIZE=1."
        )


def _run(arguments: list[str]) -> None:
    """Run a command, and flush its output."""
    _check_utf8(arguments)
    take_pipes()
    # -- ends options, and none precede the command
    if arguments[:1] == ["--"]:
        arguments = arguments[1:]
    with (
        _lost_interrupts_sent_again(),
        needs_torch(),
        _show_running(arguments),
        counted(arguments[0] if arguments else ""),
    ):
        try:
            if not _print_method_help(arguments):
                # Summaries are read from the sources, which only the list of commands needs.
                program = app
                if not arguments or arguments[0].startswith("-"):
                    program = make_app(overview=True)
                program(mark_literals(arguments), exit_on_error=False, print_error=False)
        except SystemExit as end:
            # rich ends with code 1 where whoever read the help has ended, as head does.
            if isinstance(end.__context__, BrokenPipeError):
                drop_output()
                sys.exit(0)
            # --help and --version end so, with text that may not be written yet.
            flush_output()
            raise
        flush_output()


def _check_utf8(arguments: list[str]) -> None:
    """Raise ConfigError for an argument that is not UTF-8, which Python keeps as lone surrogates."""
    for argument in arguments:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise ConfigError(f"Arguments must be UTF-8; received {argument!r}. Set the terminal to UTF-8.") from error


@contextmanager
def _show_running(arguments: list[str]) -> Iterator[None]:
    """Show that a long command is running, before it has loaded what reports more."""
    if not (arguments[:1] and arguments[0] in LONG):
        yield
        return
    # The allocator would give memory back after each step, and ask for it again.
    if arguments[0] in TRAINING:
        keep_freed_memory()
    with stage(f"samesense {arguments[0]}"), _sigterm_as_ctrl_c():
        finder = BeforeTorch()
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)


@contextmanager
def _lost_interrupts_sent_again() -> Iterator[None]:
    """Send Ctrl-C again where it came within a finalizer, such as that of a dataset: Python only prints such errors.

    The first Ctrl-C of a training, which its callback notes before it raises, is not lost.
    """
    before = sys.unraisablehook
    timers: list[threading.Timer] = []

    def report(unraisable: sys.UnraisableHookArgs) -> None:
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            before(unraisable)
        elif unraisable.exc_type is KeyboardInterrupt:
            # Later, as this function is called within the finalizer too.
            timers.append(threading.Timer(RESENT_AFTER, _interrupt_main_thread))
            timers[-1].daemon = True
            timers[-1].start()

    sys.unraisablehook = report
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in timers:
            timer.cancel()


def _interrupt_main_thread() -> None:
    if hasattr(signal, "pthread_kill"):
        # It wakes the thread, too, where it sleeps.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
    else:
        _thread.interrupt_main()


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Treat the SIGTERM of a scheduler or a container as Ctrl-C, so that the run can be resumed.

    A second one ends the process at once.
    """

    def stop(signum: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as shells set it for background jobs of a script
            signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.raise_signal(signal.SIGINT)

    try:
        before = signal.signal(signal.SIGTERM, stop)
    except ValueError:  # outside the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class BeforeTorch:
    """Import hook that shows progress before torch loads, which blocks all threads for seconds; it finds no modules."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Show the open progress if torch is about to be imported."""
        if name == "torch":
            show_open_progress()


def _print_method_help(arguments: list[str]) -> bool:
    """Print the settings of a method for ``train --help --method NAME``, in any order; return whether it was that."""
    if arguments[:1] != ["train"] or not {"--help", "-h"} & {*arguments} or "--method" not in arguments[:-1]:
        return False
    from samesense.cli.commands.train import app_of_method

    app_of_method(arguments[arguments.index("--method") + 1]).help_print([])
    return True


def _fail(message: str) -> None:
    sys.stderr.write(painted(f"samesense: error: {visible(message)}\n", sys.stderr))
    try:
        flush_output()
    except (OSError, ValueError):
        drop_output()
    sys.exit(2)


def _silence_libraries() -> None:
    """Silence other libraries' messages and bars, unless the user has set them; call before they are imported."""
    for name in ("HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS", "TQDM_DISABLE"):
        os.environ.setdefault(name, "1")  # our own bars ignore these
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault(TOKENIZERS, "true")
