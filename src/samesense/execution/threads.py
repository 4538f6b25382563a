"""How many threads compute."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager


def cores() -> int:
    """Return the processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def torch_threads(count: int | None) -> Iterator[None]:
    """Compute by torch on so many threads inside, and on as many as before after it; ``None`` changes nothing."""
    if count is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)
