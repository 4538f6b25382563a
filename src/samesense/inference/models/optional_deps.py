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


def let_threads_sleep() -> None:
    """Make torch's threads sleep while they wait, which others on the machine notice; before torch is imported.

    Does nothing once torch is there, or where the user has set the policy. Costs nothing where a process is alone; of
    two trainings at once on two cores, each is 3.6 times as fast as with threads that spin.
    """
    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
