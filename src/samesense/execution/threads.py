"""How many threads compute, how they wait, and what memory they keep: settings of the process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, RLock

SPIN = "1000"
"""Rounds for which a thread of GNU's OpenMP waits awake, some microseconds, before it sleeps: more are quicker for a
process that is alone, and slow both of two; figures in ``benchmarks/LOG.md``."""

_ALONE = RLock()

_forked = False
"""Whether this process was forked from one that had loaded torch: the threads of torch are not in it."""


def survive_forks() -> None:
    """Have torch compute on one thread in processes that are forked from now on, as its own data loaders do.

    A fork takes along what torch knows of its threads, and none of them: the first computation on several would wait
    without end. ``spawn`` has no such bounds.
    """
    if hasattr(os, "register_at_fork"):
        _register_once()


@cache
def _register_once() -> None:
    os.register_at_fork(after_in_child=_compute_on_one_thread)


def _compute_on_one_thread() -> None:
    global _forked
    _forked = True
    os.environ.setdefault(TOKENIZERS, "false")  # else the library warns of the fork, and does the same
    sys.modules["torch"].set_num_threads(1)


def cores() -> int:
    """Return the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Compute by torch on so many threads inside, and on as many as before after it; ``None`` changes nothing.

    Threads that do so come one after another: torch gives a new one what another has set.
    """
    if count is None:
        yield
        return
    import torch

    with _ALONE:
        before = torch.get_num_threads()
        torch.set_num_threads(1 if _forked else count)
        try:
            yield
        finally:
            torch.set_num_threads(before)


TOKENIZERS = "TOKENIZERS_PARALLELISM"
"""Variable that the tokenizers library reads before each batch of texts."""


_SERIAL: list[str | None] = []
"""What the variable was before, for each use that goes on."""

_CHANGING = Lock()


@contextmanager
def serial_tokenizer(wanted: bool) -> Iterator[None]:
    """Tokenise on one thread inside where that is ``wanted``, and as before after it.

    For training on a CPU, whose cores have just computed: sixteen texts took 0.35 ms so, and 1.4 on two threads.
    Trainings in several threads may overlap.
    """
    if not wanted:
        yield
        return
    with _CHANGING:
        _SERIAL.append(_SERIAL[0] if _SERIAL else os.environ.get(TOKENIZERS))
        os.environ[TOKENIZERS] = "false"
    try:
        yield
    finally:
        with _CHANGING:
            before = _SERIAL.pop()
            if not _SERIAL:
                os.environ.pop(TOKENIZERS) if before is None else os.environ.update({TOKENIZERS: before})


def let_threads_sleep() -> None:
    """Make torch's threads sleep soon where they wait, which others on the machine notice; before torch is imported.

    Does nothing once torch is there, or where the user has set how threads wait.
    """
    if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)  # GNU's OpenMP, torch's on Linux, puts it first


KEEP = {"MALLOC_MMAP_MAX_": (0, -4, 0), "MALLOC_TRIM_THRESHOLD_": (2**62, -1, -1)}
"""How glibc keeps what is freed: its variables with their values, then number and value for ``mallopt`` (malloc.h)."""


def keep_freed_memory() -> None:
    """Make the C library keep what torch frees, in this process and in those that it starts from now on.

    glibc gives each tensor of some megabytes back to the kernel, which clears its pages anew a step later: with 1,024
    pairs a step that took as long as the training; figures in ``benchmarks/LOG.md``. Does nothing with another C
    library, or where the user has set how memory is kept.
    """
    if any(name.startswith("MALLOC_") for name in os.environ) or not sys.platform.startswith("linux"):
        return
    import ctypes  # 10 ms, which commands that do not train need not wait for

    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        return
    for name, (variable, number, value) in KEEP.items():
        library.mallopt(number, value)
        os.environ[name] = str(variable)
