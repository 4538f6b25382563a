"""What a base install lacks, and how that is said; and how torch's threads wait. Imports next to nothing."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from samesense.errors import MissingExtraError

PACKAGES = ("torch", "transformers", "sentence_transformers")
"""What a base install lacks; the extra ``torch`` brings all of them."""


def has_torch() -> bool:
    """Return whether models can be computed by torch, without importing it."""
    with contextlib.suppress(ModuleNotFoundError, ValueError):
        return all(find_spec(package) is not None for package in PACKAGES)
    return False


@contextlib.contextmanager
def needs_torch() -> Iterator[None]:
    """Say in one sentence what to install where torch is not."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in PACKAGES:
            raise
        raise MissingExtraError(missing.replace("_", "-"), "torch") from error


SPIN = "1000"
"""Rounds for which a thread of GNU's OpenMP waits awake, some microseconds, before it sleeps: more are quicker for a
process that is alone, and slow both of two; figures in ``benchmarks/LOG.md``."""


def let_threads_sleep() -> None:
    """Make torch's threads sleep soon where they wait, which others on the machine notice; before torch is imported.

    Does nothing once torch is there, or where the user has set how threads wait.
    """
    if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)  # GNU's OpenMP, torch's on Linux, puts it first
