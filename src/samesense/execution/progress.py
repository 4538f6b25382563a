"""Progress: what a long operation has done, and how long the rest may take, so that none is ever silent.

On a terminal and in a notebook it is a live bar by tqdm on standard error. Elsewhere it is a line every few seconds:
of the logger ``samesense.execution.progress`` where the logger ``samesense`` lets messages of level INFO through, as
the command does and a library user does with ``logging.basicConfig(level="INFO")``; else on standard error, and only of
what takes longer than :data:`INTERVAL`. What is over within :data:`PATIENCE` shows nothing. Where
it is shown at all, and how it is switched off: :mod:`samesense.execution.audience`.
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

logger = logging.getLogger(__name__)

PATIENCE = 0.5
"""Seconds of silence after which an operation is shown that was not yet; six times that within another one."""

INTERVAL = 8.0
"""Seconds of silence after which its next line is due where there is no terminal; a tick more is still under 10."""

TICK = 0.25
"""Seconds between two looks at whether something is due; on a terminal, between two redrawings."""

now = time.monotonic
_lock = RLock()
_open: list[Progress] = []
"""What is going on, the innermost last, which is the one that is shown."""

_heard = 0.0
"""When something was last said."""


def heard() -> None:
    """Note that something was said just now, such as a message: the next line is due an interval later."""
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
    """Return what shows a long operation: what is done (``desc``), counted in ``unit``, ``initial`` of it before.

    ``leave`` keeps the last state in sight. An ``inner`` one is shown within an operation that does not count by
    itself; outside any, where a person called it from the main thread, or asked for it. The unit ``"B"`` is counted in
    millions.
    """
    shown = is_shown()
    if inner and shown:
        shown = not _open[-1].unit if _open else is_shown_alone()
        desc += f" ({_open[-1].desc})" if len(_open) > 1 else ""
    return Progress(desc, unit, total, initial=initial, leave=leave, shown=shown)


@contextmanager
def stage(desc: str) -> Iterator[None]:
    """Show that something goes on of which no steps are known, such as the loading of a model."""
    with progress_bar(desc, "", leave=False):
        yield


@contextmanager
def call_stage(function: str) -> Iterator[None]:
    """Show that a function of the library is at work, unless what called it shows that."""
    if _open:
        yield
        return
    with stage(function):
        yield


def show_what_goes_on() -> None:
    """Show it at once: what follows may hold up every thread for seconds, as the loading of torch does."""
    with _lock:
        if _open:
            _open[-1].show()


def nothing_goes_on() -> None:
    """End all that is shown: from now on a person is waited for."""
    for one in _open[::-1]:
        one.close()


@contextmanager
def without_bars(*, reports: bool = True) -> Iterator[None]:
    """Keep the bars of transformers ("Loading weights", "Writing model shards") off the terminal of whoever calls us.

    Those of downloads from the hub stay. Without ``reports`` its warnings are kept off too, such as of weights that a
    file did not have.
    """
    from transformers.utils import logging as theirs

    before, level = theirs.set_tqdm_hook(_disabled), theirs.get_verbosity()
    if not reports:
        theirs.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        theirs.set_tqdm_hook(before)
        theirs.set_verbosity(level)


def _disabled(bar: Callable[..., Any], given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    return bar(*given, **{**named, "disable": True})


class Progress:
    """One long operation; see :func:`progress_bar`. Open from its making until :meth:`close`."""

    def __init__(self, desc: str, unit: str, total: int | None, *, initial: int, leave: bool, shown: bool) -> None:
        self.desc, self.unit, self.total, self.n, self.initial = desc, unit, total, initial, initial
        self.leave, self.shown = leave, shown
        self.figures: dict[str, str] = {}
        self.started, self._said, self._said_n = now(), False, initial
        self._drawn: Any = None
        self._is_eager = is_eager()
        if shown:
            _begin(self)

    def update(self, count: int = 1) -> None:
        """Count what was done since."""
        self.n += count
        if self._drawn is not None:
            self._drawn.update(count)
        elif self.shown:
            self.tell()

    def set_postfix(self, figures: Mapping[str, str]) -> None:
        """Show figures behind the count, such as the loss."""
        self.figures = dict(figures)
        if self._drawn is not None:
            self._drawn.set_postfix(figures, refresh=False)

    def begin_anew(self) -> None:
        """Have the speed count from now on: what was done before is no step."""
        self.started = now()
        if self._drawn is not None:
            self._drawn.unpause()

    def tell(self) -> None:
        """Show how far it is, if that is due."""
        with _lock:
            if not self.shown or _open[-1] is not self:
                return
            if is_interactive():
                if now() - self.started >= PATIENCE:
                    self._draw()
            elif now() - _heard >= self._due():
                self._say()

    def show(self) -> None:
        """Show it at once, if it was not shown yet."""
        if not self._said and self._drawn is None:
            if is_interactive():
                self._draw()
            else:
                self._say()

    def close(self) -> None:
        """End it."""
        if not self.shown:
            return
        with _lock:
            self.shown = False
            _open.remove(self)
            if self._said and self.leave and self.n != self._said_n:
                self._say()
            self._undraw(leave=self.leave)
        if not _open:
            _watch.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _due(self) -> float:
        if self._said or not self._is_eager:
            return INTERVAL
        return PATIENCE if len(_open) == 1 else 6 * PATIENCE

    def _say(self) -> None:
        self._said, self._said_n = True, self.n
        heard()
        say(logger, self.line())

    def _draw(self) -> None:
        if self._drawn is not None:
            self._drawn.refresh()
            return
        for outer in _open:
            outer._undraw(leave=False)  # one live line
        form = None if self.unit else "{desc} {elapsed}"
        # smoothing: batches are sorted by length, and evaluations lie between steps: the mean speed says most
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
        self._drawn.start_t = self._drawn._time() - (now() - self.started)
        self._drawn.update(self.n - self.initial)

    def _undraw(self, *, leave: bool) -> None:
        if self._drawn is not None:
            self._drawn.leave = leave
            self._drawn.close()
            self._drawn = None

    def line(self) -> str:
        """Return how far it is, in words."""
        gone = now() - self.started
        if not self.unit:
            return f"{self.desc}, {clock_time(gone)} so far"
        done = self._count(self.n) + ("" if self.total is None else f" of {self._count(self.total)}")
        parts = [f"{self.desc}: {done} {self._units(self.n if self.total is None else self.total)}"]
        parts += [*(f"{name} {value}" for name, value in self.figures.items()), f"{clock_time(gone)} gone"]
        fresh = self.n - self.initial
        if self.total is not None and fresh > 0 and self.n < self.total:
            parts.append(f"about {clock_time(gone / fresh * (self.total - self.n))} left")
        return ", ".join(parts)

    def _units(self, number: int) -> str:
        ending = "es" if self.unit.endswith("ch") else "s"
        return "MB" if self.unit == "B" else self.unit + ending * (number != 1)

    def _count(self, number: int) -> str:
        return f"{number / 1e6:,.1f}" if self.unit == "B" else f"{number:,}"


class Laps:
    """Adds up seconds by what they were spent on, each lap from the end of the one before."""

    def __init__(self, since: float | None = None) -> None:
        self.seconds: dict[str, float] = {}
        self._last = time.perf_counter() if since is None else since

    def count(self, what: str | None) -> None:
        """End a lap; ``None`` counts it nowhere."""
        ended = time.perf_counter()
        if what is not None:
            self.seconds[what] = round(self.seconds.get(what, 0.0) + ended - self._last, 2)
        self._last = ended

    def add(self, seconds: Mapping[str, float]) -> None:
        """Add what others counted, in the place of the lap that holds it."""
        for what, spent in seconds.items():
            self.seconds[what] = round(self.seconds.get(what, 0.0) + spent, 2)
        self.count(None)


def where_time_went(seconds: Mapping[str, float]) -> str:
    """Return a line for people: the whole, and its parts."""
    parts = ", ".join(f"{what} {clock_time(spent)}" for what, spent in seconds.items())
    return f"time: {clock_time(sum(seconds.values()))} in all: {parts}"


def clock_time(seconds: float) -> str:
    """Return a span of time as minutes and seconds, with hours where there are some."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class _Watch:
    """A thread, there as long as something goes on, that shows it even if nothing is counted for a while."""

    def __init__(self) -> None:
        self._over: Event | None = None

    def start(self) -> None:
        if self._over is None:
            self._over = Event()
            Thread(target=self._run, args=(self._over,), daemon=True).start()

    def stop(self) -> None:
        if self._over is not None:
            self._over.set()
            self._over = None

    def _run(self, over: Event) -> None:
        while not over.wait(TICK):
            with _lock:
                if _open and not over.is_set():
                    _open[-1].tell()


_watch = _Watch()


def _begin(one: Progress) -> None:
    if not _open:
        heard()
    with _lock:
        _open.append(one)
    _watch.start()
    one.tell()
