"""Packages that a base install lacks, and the error that names them. This module imports almost nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from importlib.util import find_spec

from samesense.errors import MissingExtraError

PACKAGES = ("torch", "transformers", "sentence_transformers")
"""Packages of the extra ``torch``, which a base install lacks."""


def has_torch() -> bool:
    """Return whether torch and its packages are installed, without importing them."""
    with contextlib.suppress(ModuleNotFoundError, ValueError):
        return all(find_spec(package) is not None for package in PACKAGES)
    return False


def has_openvino() -> bool:
    """Return whether OpenVINO is installed, without importing it."""
    return find_spec("openvino") is not None


@contextlib.contextmanager
def needs_torch() -> Iterator[None]:
    """Raise MissingExtraError, which says what to install, for a failed import of torch or its packages."""
    try:
        yield
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in PACKAGES:
            raise
        raise MissingExtraError(missing.replace("_", "-"), "torch") from error
