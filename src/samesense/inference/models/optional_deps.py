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


SPIN = "600"
"""Rounds for which a thread of GNU's OpenMP waits awake, some microseconds. Measured, two cores, 16 pairs a step of
CoSENT in bfloat16: with 0, 600, 1,000, 4,000 and 10,000 rounds 224, 152, 153, 150 and 130 ms a step alone, and 229, 258,
308, 591 and 1,063 ms where two trainings run at once."""


def let_threads_sleep() -> None:
    """Make torch's threads sleep soon where they wait, which others on the machine notice; before torch is imported.

    Does nothing once torch is there, or where the user has set how threads wait.
    """
    if "torch" not in sys.modules and "OMP_WAIT_POLICY" not in os.environ:
        os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)  # goes before the policy in GNU's OpenMP, which torch has on Linux
