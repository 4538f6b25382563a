"""Settings of the process: how many threads compute, how they wait, and what memory they keep."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, RLock

SPIN = "1000"
"""Rounds for which a thread of GNU's OpenMP spins, some microseconds, before it sleeps. More rounds are faster for a
single process, and slow down two that share the machine; figures in ``benchmarks/LOG.md``."""

_ALONE = RLock()

_forked = False
"""Whether this process was forked from one that had loaded torch, whose threads it does not have."""


def survive_forks() -> None:
    """Make torch compute on one thread in processes that are forked from now on, as its own data loaders do.

    A fork copies torch's thread pool without its threads: the first computation on several would deadlock. ``spawn``
    has no such limit.
    """
    if hasattr(os, "register_at_fork"):
        _register_once()


@cache  # Python has no way to unregister a handler
def _register_once() -> None:
    os.register_at_fork(after_in_child=_compute_on_one_thread)


def _compute_on_one_thread() -> None:
    global _forked
    _forked = True
    os.environ.setdefault(TOKENIZERS, "false")  # else the library warns about the fork, and does the same
    sys.modules["torch"].set_num_threads(1)


def cores() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Let torch compute on ``count`` threads within the context; ``None`` changes nothing.

    The contexts of several threads run one after another: torch hands the setting of one thread to new ones.
    """
    if count is None:
        yield
        return
    # Callers that set no threads, as those of NumPy, never load torch.
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
"""The previous value of the variable, for each open context."""

_CHANGING = Lock()


@contextmanager
def serial_tokenizer(enabled: bool) -> Iterator[None]:
    """Tokenize on one thread within the context, if ``enabled``.

    For training on a CPU, whose cores are busy: sixteen texts took 0.35 ms on one thread, and 1.4 on two. Trainings in
    several threads may overlap.
    """
    if not enabled:
        yield
        return
    with _CHANGING:
        # With a context open the variable holds "false" already; the first one saved the user's value.
        _SERIAL.append(_SERIAL[0] if _SERIAL else os.environ.get(TOKENIZERS))
        os.environ[TOKENIZERS] = "false"
    try:
        yield
    finally:
        with _CHANGING:
            before = _SERIAL.pop()
            if not _SERIAL:
                if before is None:
                    os.environ.pop(TOKENIZERS)
                else:
                    os.environ[TOKENIZERS] = before


def let_threads_sleep() -> None:
    """Make torch's idle threads sleep soon, so that they leave the cores to other processes; call before torch loads.

    Does nothing once torch is imported, or where the user has set how threads wait.
    """
    if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)  # takes precedence in GNU's OpenMP, torch's on Linux


KEEP = {"MALLOC_MMAP_MAX_": (0, -4, 0), "MALLOC_TRIM_THRESHOLD_": (2**62, -1, -1)}
"""How glibc keeps freed memory: variables with their values, then parameter and value for ``mallopt`` (malloc.h)."""


def keep_freed_memory() -> None:
    """Make the C library keep the memory that torch frees, in this process and in those that it starts from now on.

    glibc returns each tensor of some megabytes to the kernel, which clears its pages again a step later: with 1,024
    pairs a step that took as long as the training; figures in ``benchmarks/LOG.md``. Does nothing with another C
    library, or where the user has set malloc's variables.
    """
    if any(name.startswith("MALLOC_") for name in os.environ) or not sys.platform.startswith("linux"):
        return
    import ctypes  # takes 10 ms, which commands that do not train save

    # The library that this process has loaded already.
    library = ctypes.CDLL(None)
    if not hasattr(library, "mallopt"):
        return
    for name, (variable, number, value) in KEEP.items():
        library.mallopt(number, value)
        os.environ[name] = str(variable)
