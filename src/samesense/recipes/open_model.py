"""Open anything that can be judged by its name, an Origin among it."""

from __future__ import annotations

from typing import Any

from samesense.inference.onnx.format import is_exported
from samesense.types import Candidate

ORIGIN = "origin:"
"""Stands before the folder of an Origin."""


def open_named(name: str, **how: Any) -> Candidate:
    """Open what ``name`` says.

    Args:
        name: ``origin:FOLDER``, or what :func:`samesense.encoder.candidates.open_candidate` takes.
        how: as for that; an Origin computes as it was made, and takes none of it.

    Raises:
        ModelError, ConfigError: if it cannot be opened.
    """
    if name.startswith(ORIGIN):
        from samesense.context.origin.origin import open_origin

        return open_origin(name.removeprefix(ORIGIN))
    if is_exported(name) and how.get("precision") != "bfloat16" and how.get("device") in (None, "cpu"):
        from samesense.inference.models.exported import open_exported

        return open_exported(name, cache=how.get("cache"), seed=how.get("seed"))
    from samesense.encoder.candidates import open_candidate

    return open_candidate(name, **how)
