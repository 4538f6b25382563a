"""Output of every command: data on standard output, messages on standard error; and types of flags."""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from samesense.cli.colour import painted
from samesense.cli.hyphens import HYPHENS
from samesense.errors import ConfigError, ResultError
from samesense.execution.progress import note_message
from samesense.execution.ranks import is_main
from samesense.execution.unread import current
from samesense.failures import visible
from samesense.urls import Name

DropTexts = Annotated[bool, Parameter(negative="", help="leave out rows without a text, and log which.")]
Json = Annotated[bool, Parameter(name="--json", negative="")]
Flag = Annotated[bool, Parameter(negative="")]
Several = Annotated[list[Name], Parameter(consume_multiple=True, negative="")]
Output = Annotated[Path, Parameter(name=["--output", "-o"])]
FileOrOutput = Annotated[str, HYPHENS, Parameter(name=["--output", "-o"])]
FileOrInput = Annotated[str, HYPHENS]
Text = Annotated[str, HYPHENS]

logger = logging.getLogger("samesense.cli")


# Backticks within quotes are those of a user's text or label.
_ARGUMENT = re.compile(r"""(?<!\w)(?P<mark>['"]).*?(?P=mark)(?!\w)|`(?P<name>[a-z][a-z0-9_]*)`""")


def as_flags(message: str) -> str:
    """Return a message of the library with its argument names, such as `label_range`, spelled as flags.

    >>> as_flags("a label is '`my_label`': give `label_range`")
    "a label is '`my_label`': give --label-range"
    """
    return _ARGUMENT.sub(_spelled, message)


def _spelled(match: re.Match[str]) -> str:
    name = match["name"]
    return match[0] if name is None else f"--{name.replace('_', '-')}"


class _ToStandardError(logging.Handler):
    """Writes messages above the progress bar, if there is one, and marks warnings."""

    def emit(self, record: logging.LogRecord) -> None:
        mark = "warning: " if record.levelno == logging.WARNING else ""
        line = painted(visible(f"{mark}{as_flags(record.getMessage())}"), sys.stderr)
        # tqdm moves an open bar below the line; it is loaded only where there is a bar.
        if "tqdm" in sys.modules and sys.stderr.isatty():  # a bar may be open
            sys.modules["tqdm"].tqdm.write(line, file=sys.stderr)
        else:
            sys.stderr.write(f"{line}\n")
        # A message may be the last one for minutes.
        sys.stderr.flush()
        note_message()


RERUN = "Finished work is kept: the same command resumes it."
RERUN_WITH_FLAG = "Finished work is kept: resume it by the same command with --resume."
"""What an interrupted command says."""


@contextmanager
def on_interrupt(hint: str, saved: Path, *, resumes: bool = True) -> Iterator[None]:
    """On Ctrl-C add ``hint``, a line on how to continue, if the file ``saved`` exists and the error has no message.

    Unless the command ``resumes`` what it finds, the file must be its own, and not that of an earlier run.
    """
    before = saved.read_bytes() if not resumes and saved.is_file() else None
    try:
        yield
    except KeyboardInterrupt as stop:
        # Without a file, nothing was kept that could be resumed.
        is_kept = saved.is_file() and saved.read_bytes() != before
        raise KeyboardInterrupt(*(stop.args or ([hint] if is_kept else []))) from None


def show_messages() -> None:
    """Write the library's log to standard error; of several processes that train together, only the first does."""
    logger = logging.getLogger("samesense")
    # A second call, as from Python, must not write each message twice.
    if is_main() and not any(isinstance(handler, _ToStandardError) for handler in logger.handlers):
        logger.addHandler(_ToStandardError())
        logger.setLevel(logging.INFO)
        logger.propagate = False  # else a library that sets up the root logger has each message written twice


def log_conclusion(lines: Iterable[str]) -> None:
    """Log the conclusion of a run; lines on what got worse are warnings."""
    for line in lines:
        logger.log(logging.WARNING if "WORSE" in line else logging.INFO, line)


def named_values(flag: str, words: list[str] | None) -> list[tuple[str, str]]:
    """Return names and values of a flag that takes several ``NAME=VALUE``."""
    values = []
    for word in words or []:
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise ConfigError(f"{flag} takes NAME=VALUE; received {word!r}.")
        values.append((name, value))
    return values


def refuse_mixed_output(output: str, what: str, *, json: bool) -> None:
    """Raise ConfigError where the counts, as JSON, and rows would both be written to standard output."""
    if json and output == "-":
        raise ConfigError(f"With `json` standard output has the counts; name a file for {what}: `output`.")


def put(line: str) -> None:
    """Write a line of data; to a terminal with its control characters as escapes, elsewhere as it is."""
    if sys.stdout.isatty():
        line = visible(line)
    sys.stdout.write(line + "\n")


def put_painted(line: str) -> None:
    """Write a line for people, with colours on a terminal that shows them."""
    sys.stdout.write(painted(visible(line), sys.stdout) + "\n")


def put_row(*cells: object) -> None:
    """Write a row of tab-separated cells; tabs and line ends within cells become spaces."""
    # Not at the top: the package reads NumPy, and the list of commands needs neither.
    from samesense.inference.lines import without_breaks

    put("\t".join(without_breaks(str(cell)) for cell in cells))


@contextmanager
def shown_if_unwritten(show: Callable[[Any], None]) -> Iterator[None]:
    """Write a result to standard output by ``show`` if it could not be written to its file, or is not complete."""
    try:
        yield
    except ResultError as error:
        show(error.result)
        raise


def put_json(values: Iterable[dict[str, Any]]) -> None:
    """Write one JSON object a line, with a note on its texts that were not read whole, or else on all encoded texts."""
    for value in values:
        # NaN is no JSON: it would fail in the program that reads this.
        put(json.dumps({**value, **_unread(value)}, ensure_ascii=False, allow_nan=False))


def put_result(result: Any, *, json: bool) -> None:
    """Write a result as one JSON object, or else as text."""
    if json:
        put_json([result.to_dict()])
    else:
        put(str(result))


def _unread(value: dict[str, Any]) -> dict[str, Any]:
    """Return which texts of an object were not read whole; for an object without texts, how many in all."""
    counted = current()
    if counted is None or not counted.any:
        return {}
    texts = {name: cell for name, cell in value.items() if name.startswith(("text", "query")) and isinstance(cell, str)}
    kinds = {name: kind for name, text in texts.items() if (kind := counted.reason_for(text)) is not None}
    unread: Any = counted.figures
    if texts:
        unread = kinds
    if not unread:
        return {}
    return {"unread": unread}
