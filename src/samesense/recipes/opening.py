"""Open anything that can be judged by its name, an Origin among it."""

from __future__ import annotations

from typing import Any

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
        from samesense.context.origin import open_origin

        return open_origin(name.removeprefix(ORIGIN))
    from samesense.encoder.candidates import open_candidate

    return open_candidate(name, **how)
