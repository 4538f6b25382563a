"""Progress of long operations: what is done, and how long the rest may take.

On a terminal and in a notebook it is a live tqdm bar on standard error. Elsewhere it is a line every few seconds: from
the logger ``samesense.execution.progress`` where the logger ``samesense`` is enabled for INFO, as the command sets it
and ``logging.basicConfig(level="INFO")`` does in Python; otherwise on standard error, and only for operations longer
than :data:`INTERVAL`. An operation shorter than :data:`PATIENCE` shows nothing. Who sees progress, and how it is
switched off: :mod:`samesense.execution.audience`.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Event, RLock, Thread
from typing import Any, Self

from samesense.execution.audience import bar_class, bar_size, is_eager, is_interactive, is_shown, is_shown_alone, say
from samesense.execution.timing import clock_time

logger = logging.getLogger(__name__)

PATIENCE = 0.5
"""Seconds of silence before an operation is first shown; six times that for one within another."""

INTERVAL = 8.0
"""Seconds of silence before the next line where there is no terminal; with a tick more it is still under 10."""

TICK = 0.25
"""Seconds between two checks whether a line is due; on a terminal, between two redraws."""

now = time.monotonic
_lock = RLock()
_open: list[Progress] = []
"""Open operations, the innermost last; only that one is shown."""

_heard = 0.0
"""When a line was last written."""


def note_message() -> None:
    """Note that a message was written just now: the next line is due an interval later."""
    global _heard
    _heard = now()


def progress_bar(
    desc: str,
    unit: str,
    total: int | None = None,
    *,
    initial: int = 0,
    leave: bool = True,
    inner: bool = False,
) -> Progress:
    """Return the progress of a long operation ``desc``, counted in ``unit`` from ``initial`` on.

    ``leave`` keeps the last state in sight. An ``inner`` one is shown within an operation that has no count of its
    own; outside any, where it was called from the main thread of an interactive session, or requested. The unit
    ``"B"`` is counted in millions.
    """
    # What is least work is asked first: a model that encodes one text at a time asks each time.
    is_visible = (not inner or _has_place_for_inner()) and is_shown()
    if inner and len(_open) > 1:
        # Names the operation that this one is part of.
        desc += f" ({_open[-1].desc})"
    return Progress(desc, unit, total, initial=initial, leave=leave, is_visible=is_visible)


def _has_place_for_inner() -> bool:
    """Return whether an inner operation may be shown: within one without a count, or alone where someone watches."""
    if _open:
        return not _open[-1].unit
    return is_shown_alone()


@contextmanager
def stage(desc: str) -> Iterator[None]:
    """Show an operation without a count of steps, such as loading a model."""
    with progress_bar(desc, "", leave=False):
        yield


@contextmanager
def call_stage(function: str) -> Iterator[None]:
    """Show that a library function is running, unless its caller shows progress already."""
    if _open:
        yield
        return
    with stage(function):
        yield


def show_open_progress() -> None:
    """Show the open operation at once: what follows may block every thread for seconds, as importing torch does."""
    with _lock:
        if _open:
            _open[-1].show()


def close_progress() -> None:
    """Close all progress: from now on the program waits for its user."""
    # A copy, as closing removes from the list.
    for operation in _open[::-1]:
        operation.close()


@contextmanager
def without_bars(*, reports: bool = True) -> Iterator[None]:
    """Hide the bars of transformers ("Loading weights", "Writing model shards") from our callers.

    Download bars of the hub stay. Without ``reports`` its warnings are hidden too, such as those about missing weights.
    """
    # Progress is shown by commands that never load transformers.
    from transformers.utils import logging as transformers_logging

    before = transformers_logging.set_tqdm_hook(_disabled)
    level = transformers_logging.get_verbosity()
    if not reports:
        transformers_logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        transformers_logging.set_tqdm_hook(before)
        transformers_logging.set_verbosity(level)


def _disabled(bar: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return bar(*args, **{**kwargs, "disable": True})


class Progress:
    """One long operation; see :func:`progress_bar`. Open from its creation until :meth:`close`."""

    def __init__(self, desc: str, unit: str, total: int | None, *, initial: int, leave: bool, is_visible: bool) -> None:
        self.desc = desc
        self.unit = unit
        self.total = total
        self.n = initial
        self.initial = initial
        self.leave = leave
        self.is_visible = is_visible
        self.figures: dict[str, str] = {}
        self.started = now()
        self._has_line = False  # whether a line was written
        self._line_n = initial  # and the count that it gave
        self._drawn: Any = None
        self._is_eager = is_eager()
        if is_visible:
            _begin(self)

    def update(self, count: int = 1) -> None:
        """Add ``count`` to what is done."""
        self.n += count
        if self._drawn is not None:
            self._drawn.update(count)
        elif self.is_visible:
            self.tell()

    def set_postfix(self, figures: Mapping[str, str]) -> None:
        """Show figures behind the count, such as the loss."""
        self.figures = dict(figures)
        if self._drawn is not None:
            self._drawn.set_postfix(figures, refresh=False)

    def restart_clock(self) -> None:
        """Measure the speed from now on: what was done before is no step."""
        self.started = now()
        if self._drawn is not None:
            self._drawn.unpause()

    def tell(self) -> None:
        """Show the state, if that is due."""
        with _lock:
            # Under the lock: the watching thread may call while the operation is being closed.
            if not self.is_visible or _open[-1] is not self:
                return
            if is_interactive():
                if now() - self.started >= PATIENCE:
                    self._draw()
            elif now() - _heard >= self._due():
                self._say()

    def show(self) -> None:
        """Show the state at once, if it was not shown yet."""
        if not self._has_line and self._drawn is None:
            if is_interactive():
                self._draw()
            else:
                self._say()

    def close(self) -> None:
        """End the operation."""
        if not self.is_visible:
            return
        with _lock:
            self.is_visible = False
            _open.remove(self)
            # The line that was written last gives an older count.
            if self._has_line and self.leave and self.n != self._line_n:
                self._say()
            self._undraw(leave=self.leave)
        if not _open:
            _watch.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _due(self) -> float:
        if self._has_line or not self._is_eager:
            return INTERVAL
        if len(_open) == 1:
            return PATIENCE
        return 6 * PATIENCE

    def _say(self) -> None:
        self._has_line = True
        self._line_n = self.n
        note_message()
        say(logger, self.line())

    def _draw(self) -> None:
        if self._drawn is not None:
            self._drawn.refresh()
            return
        for outer in _open:
            outer._undraw(leave=False)  # only one bar at a time
        form = None if self.unit else "{desc} {elapsed}"
        # smoothing=0: batches are sorted by length and evaluations lie between steps, so the mean speed predicts best
        self._drawn = bar_class()(
            total=self.total,
            initial=self.initial,
            desc=self.desc,
            unit=self.unit,
            leave=self.leave,
            smoothing=0,
            bar_format=form,
            unit_scale=self.unit == "B",
            file=sys.stderr,
            disable=False,
            postfix=self.figures,
            **bar_size(),
        )
        # the bar's clock starts with the operation, which may be older than the bar
        self._drawn.start_t = self._drawn._time() - (now() - self.started)
        self._drawn.update(self.n - self.initial)

    def _undraw(self, *, leave: bool) -> None:
        if self._drawn is not None:
            self._drawn.leave = leave
            self._drawn.close()
            self._drawn = None

    def line(self) -> str:
        """Return the state as a line of text."""
        elapsed = now() - self.started
        if not self.unit:
            return f"{self.desc}, {clock_time(elapsed)} so far"
        done = f"{self._count(self.n)} {self._units(self.n)}"
        if self.total is not None:
            done = f"{self._count(self.n)} of {self._count(self.total)} {self._units(self.total)}"
        phrases = [f"{self.desc}: {done}"]
        phrases += [*(f"{name} {value}" for name, value in self.figures.items()), f"{clock_time(elapsed)} gone"]
        fresh = self.n - self.initial
        if self.total is not None and fresh > 0 and self.n < self.total:
            phrases.append(f"about {clock_time(elapsed / fresh * (self.total - self.n))} left")
        return ", ".join(phrases)

    def _units(self, number: int) -> str:
        ending = "es" if self.unit.endswith("ch") else "s"
        if self.unit == "B":
            return "MB"
        return self.unit + ending * (number != 1)

    def _count(self, number: int) -> str:
        if self.unit == "B":
            return f"{number / 1e6:,.1f}"
        return f"{number:,}"


class _Watch:
    """A thread that shows the open operation even while nothing is counted; it ends with the last operation."""

    def __init__(self) -> None:
        self._over: Event | None = None

    def start(self) -> None:
        if self._over is None:
            # One event per thread: a thread that is still ending does not take a new start for its own.
            self._over = Event()
            Thread(target=self._run, args=(self._over,), daemon=True).start()

    def stop(self) -> None:
        if self._over is not None:
            self._over.set()
            self._over = None

    def _run(self, over: Event) -> None:
        while not over.wait(TICK):
            with _lock:
                # The last operation may have closed while this thread waited for the lock.
                if _open and not over.is_set():
                    _open[-1].tell()


_watch = _Watch()


def _begin(operation: Progress) -> None:
    if not _open:
        # Silence is counted from the beginning of the outermost operation.
        note_message()
    with _lock:
        _open.append(operation)
    _watch.start()
    operation.tell()
