"""What a base install lacks, and how that is said. Imports next to nothing."""

from __future__ import annotations

import contextlib
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
