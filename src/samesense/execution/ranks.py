"""Which process of a ``torchrun`` this is, known from the environment before any process group exists."""

from __future__ import annotations

import os
import sys


def world_size() -> int:
    """Return the number of processes that train together; 1 without ``torchrun``."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    """Return whether this process is the one that writes and speaks."""
    return int(os.environ.get("RANK", "0")) == 0


def finish() -> None:
    """Wait for the other processes, then end this one; does nothing where there is only one.

    The process is left without Python's clean-up: the threads of torch's gloo backend now and then abort it there
    ("terminate called without an active exception"), and ``torchrun`` would then call a finished run a failure.
    """
    if world_size() == 1:
        return
    from torch import distributed as dist

    if dist.is_initialized():
        dist.barrier()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
