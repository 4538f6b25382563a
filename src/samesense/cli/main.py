"""The ``samesense`` command: finds the command, and turns errors into one line and an exit code."""

from __future__ import annotations

import ast
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from cyclopts import App, CycloptsError, Group, Parameter, Token, convert

from samesense import __version__
from samesense.cli.colour import painted
from samesense.cli.output import as_flags, show_messages
from samesense.cli.streams import drop_output, flush_output, output_is_broken, stand_in_for_closed
from samesense.errors import ConfigError, SamesenseError
from samesense.execution.progress import show_what_goes_on, stage
from samesense.execution.threads import TOKENIZERS, keep_freed_memory, let_threads_sleep
from samesense.execution.unread import counted
from samesense.failures import system_reason
from samesense.inference.models.optional_deps import needs_torch
from samesense.urls import take_pipes

HELP = """\
Sentence similarity: train from any supervision, evaluate, put to use.

samesense quickstart

samesense train train.tsv --test test.tsv --output runs/first

samesense compare default runs/first --data test.tsv --output report.html
"""


def strictly(kind: Any, tokens: Sequence[Token]) -> Any:
    """Return an argument read as cyclopts does, but a whole number only of digits: it would round 11.6 to 12."""
    return convert(kind, tokens, _strictly_one)


def _strictly_one(kind: Any, word: str) -> Any:
    return kind(word) if kind in (int, float) else convert(kind, [word])


app = App(
    name="samesense",
    version=__version__,
    help=HELP,
    help_format="plaintext",
    default_parameter=Parameter(converter=strictly),
    suppress_keyboard_interrupt=False,  # main says how to go on
)
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
COMMANDS = tuple(name for names in GROUPS.values() for name in names)
"""Every command; each is the function of its name in the module of its name, with _ in the place of -."""

LONG = (
    *(*GROUPS["Train"], *GROUPS["Evaluate"]),
    *("score", "encode", "mine", "dedup", "match", "index", "export", "push", "label", "mine-negatives"),
)
"""Commands that may take long."""

TRAINING = ("quickstart", "train", "pretrain", "distil", "sweep", "race")
"""Commands that train: forward, backward and again, with the same memory."""

ANEW = "Nothing half-written is left: give the same command again."
"""How to go on, where a command does not say it better."""


def help_of(command: str) -> str:
    """Return what a command does, and an example: its docstring up to the arguments.

    The file is parsed and not imported: ``samesense --help`` would otherwise take twice as long.
    """
    name = command.replace("-", "_")
    module = ast.parse(Path(__file__).with_name(f"{name}.py").read_text(encoding="utf-8"))
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name]
    text = ast.get_docstring(functions[0] if functions else module) or ""
    return text.partition("\n\nArgs:")[0]


app.register_install_completion_command(
    help="Complete commands and flags in this shell (bash, zsh, fish).", group="Shell"
)

for _place, (_title, _names) in enumerate(GROUPS.items()):
    _group = Group(_title, sort_key=_place)
    for _name in _names:
        _module = _name.replace("-", "_")
        app.command(
            f"samesense.cli.{_module}:{_module}", name=_name, help=help_of(_name), group=_group, sort_key=_place
        )


def main(arguments: list[str] | None = None) -> None:
    """Run a command: exit code 0 when done, 1 when a part failed, 2 on misuse or bad input, 130 when interrupted."""
    stand_in_for_closed()
    _quiet()
    let_threads_sleep()
    show_messages()
    try:
        _run(sys.argv[1:] if arguments is None else arguments)
    except CycloptsError as error:
        from samesense.cli.misuse import in_words

        _fail(in_words(error))
    except SamesenseError as error:
        _fail(as_flags(str(error)))
    except KeyboardInterrupt as stop:
        sys.stderr.write(f"samesense: interrupted. {stop if stop.args else ANEW}\n")
        sys.exit(130)
    except Exception as error:
        if isinstance(error, BrokenPipeError) and output_is_broken():
            drop_output()
            sys.exit(0)
        reason = system_reason(error)
        if reason is None:
            raise
        _fail(f"a file or folder cannot be read or written: {reason}")


def _run(given: list[str]) -> None:
    """Run a command, and write what it printed."""
    _check_utf8(given)
    take_pipes()
    given = given[1:] if given[:1] == ["--"] else given  # ends options, of which there are none yet
    with needs_torch(), _at_work(given), counted(given[0] if given else ""):
        try:
            if not _helped_with_method(given):
                app(given, exit_on_error=False, print_error=False)
        except SystemExit:
            flush_output()
            raise
        flush_output()


def _check_utf8(given: list[str]) -> None:
    """Raise for an argument that is not UTF-8, which Python keeps as halves of surrogate pairs."""
    for argument in given:
        try:
            argument.encode()
        except UnicodeEncodeError as error:
            raise ConfigError(f"Arguments must be UTF-8; received {argument!r}. Set the terminal to UTF-8.") from error


@contextmanager
def _at_work(given: list[str]) -> Iterator[None]:
    """Show that a command that may take long is at work, before it has loaded what shows more."""
    if not (given[:1] and given[0] in LONG):
        yield
        return
    if given[0] in TRAINING:
        keep_freed_memory()
    with stage(f"samesense {given[0]}"), _sigterm_as_ctrl_c():
        finder = BeforeTorch()
        sys.meta_path.insert(0, finder)
        try:
            yield
        finally:
            sys.meta_path.remove(finder)


@contextmanager
def _sigterm_as_ctrl_c() -> Iterator[None]:
    """Take the SIGTERM of a scheduler or a container for Ctrl-C, so that it too leaves what can be resumed.

    A second one ends the process at once.
    """

    def stop(signum: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a shell's, for what a script runs in the background
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
    """Shows what goes on before torch is loaded, which takes seconds in which no other thread runs; finds nothing."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Be asked for a module that is not loaded yet."""
        if name == "torch":
            show_what_goes_on()


def _helped_with_method(given: list[str]) -> bool:
    """Print the settings of a method for ``train --help --method NAME``, in either order; False for anything else."""
    if given[:1] != ["train"] or not {"--help", "-h"} & {*given} or "--method" not in given[:-1]:
        return False
    from samesense.cli.train import help_of_method

    help_of_method(given[given.index("--method") + 1])
    return True


def _fail(message: str) -> None:
    sys.stderr.write(painted(f"samesense: error: {message}\n", sys.stderr))
    try:
        flush_output()
    except (OSError, ValueError):
        drop_output()
    sys.exit(2)


def _quiet() -> None:
    """Keep other libraries' notes and bars off the terminal, unless the user has set them; before they are imported."""
    for name in ("HF_HUB_DISABLE_PROGRESS_BARS", "HF_DATASETS_DISABLE_PROGRESS_BARS", "TQDM_DISABLE"):
        os.environ.setdefault(name, "1")  # our own bars say themselves when they show
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault(TOKENIZERS, "true")
