"""Who sees progress: a terminal, a notebook or a log; and how it is switched off."""

from __future__ import annotations

import logging
import multiprocessing
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from threading import current_thread, main_thread
from typing import Any

from samesense.execution.ranks import is_main
from samesense.failures import visible

SWITCHES = ("SAMESENSE_DISABLE_PROGRESS_BARS", "TQDM_DISABLE", "HF_HUB_DISABLE_PROGRESS_BARS")
"""Environment variables that each switch progress off in Python; the command shows it nevertheless."""

_switch: bool | None = None
"""Last call: ``False`` for :func:`disable_progress_bars`, ``True`` for :func:`enable_progress_bars`, else ``None``."""

_requested: ContextVar[bool | None] = ContextVar("progress", default=None)
"""Whether the present call of a model requests a bar; ``None`` leaves it to the context."""


def disable_progress_bars() -> None:
    """Show no progress from now on, in this process: no bars, and no lines on standard error.

    So do ``SAMESENSE_DISABLE_PROGRESS_BARS=1``, ``TQDM_DISABLE=1`` and ``HF_HUB_DISABLE_PROGRESS_BARS=1`` in the
    environment, and a level above INFO that the logger ``samesense`` is given. Messages of that logger stay.

    Example:
        >>> import samesense
        >>> samesense.disable_progress_bars()
    """
    global _switch
    _switch = False


def enable_progress_bars() -> None:
    """Show progress again after :func:`disable_progress_bars`, even where the environment switches it off.

    Example:
        >>> import samesense
        >>> samesense.enable_progress_bars()
    """
    global _switch
    _switch = True


@contextmanager
def requested_progress(show: bool | None) -> Iterator[None]:
    """Show or hide the progress of calls within; ``None`` leaves it to the outer context."""
    token = _requested.set(_requested.get() if show is None else show)
    try:
        yield
    finally:
        _requested.reset(token)


def is_logged() -> bool:
    """Return whether progress is logged, as it is in the command."""
    return logging.getLogger("samesense").isEnabledFor(logging.INFO)


def is_eager() -> bool:
    """Return whether progress was requested, so that it is shown soon even without a terminal."""
    return is_logged() or _requested.get() is True


def say(logger: logging.Logger, line: str) -> None:
    """Log a line of progress, and write it to standard error where it is not logged."""
    logger.info(line)
    if not is_logged() and sys.stderr is not None:
        sys.stderr.write(f"samesense: {visible(line)}\n")
        sys.stderr.flush()


def is_shown() -> bool:
    """Return whether a long operation is shown.

    Worker processes show nothing: several bars would overwrite each other.
    """
    requested = _requested.get()
    # Under torchrun the other processes would write the same lines.
    if not is_main() or requested is False:
        return False
    if requested or is_logged():
        return True
    is_worker = multiprocessing.parent_process() is not None
    has_level = logging.getLogger("samesense").level != logging.NOTSET
    return not (is_worker or has_level or _is_switched_off())


def is_shown_alone() -> bool:
    """Return whether a single call of a model, outside any longer operation, is shown.

    It is in an interactive session; not in a server, which calls its models outside the main thread.
    """
    if _requested.get() is not None:
        return True
    return not is_logged() and is_interactive() and current_thread() is main_thread()


def _is_switched_off() -> bool:
    if _switch is not None:
        return not _switch
    return any(os.environ.get(name, "0") not in ("", "0") for name in SWITCHES)


def is_interactive() -> bool:
    """Return whether standard error is seen as it is written: on a terminal, or in a notebook."""
    # Under pythonw, and in some services, there is no standard error.
    return sys.stderr is not None and (sys.stderr.isatty() or in_notebook())


def in_notebook() -> bool:
    """Return whether this process runs in a notebook."""
    # A notebook has imported IPython already, so it need not be loaded to ask.
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and "IPKernelApp" in shell.config


def bar_class() -> Any:
    """Return the tqdm class for a terminal or a notebook, without its warning where ipywidgets is missing."""
    if not in_notebook():
        return import_module("tqdm").tqdm
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return import_module("tqdm.auto").tqdm


def bar_size() -> dict[str, int]:
    """Return a size for a bar where the terminal reports none, as in some containers: tqdm would hide the bar."""
    try:
        columns, rows = os.get_terminal_size(sys.stderr.fileno())
    except (OSError, ValueError):  # no terminal
        return {}
    if columns and rows:
        return {}
    return {"ncols": 80, "nrows": 24}
