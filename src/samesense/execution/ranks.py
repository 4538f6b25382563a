"""Rank and world size of a ``torchrun``, read from the environment before any process group exists."""

from __future__ import annotations

import os
import sys


def world_size() -> int:
    """Return the number of processes that train together; 1 without ``torchrun``."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    """Return whether this is the main process, which writes files and messages."""
    return int(os.environ.get("RANK", "0")) == 0


def finish() -> None:
    """Wait for the other processes, then end this one; does nothing where there is only one.

    The process exits without Python's clean-up: the threads of torch's gloo backend sometimes abort there ("terminate
    called without an active exception"), and ``torchrun`` would report a finished run as failed.
    """
    if world_size() == 1:
        return
    # One process alone never needs torch to know its rank.
    from torch import distributed as dist

    if dist.is_initialized():
        dist.barrier()
    # os._exit flushes nothing.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
