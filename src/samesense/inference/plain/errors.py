"""The error of a model that only torch can compute."""

from __future__ import annotations


class NotPlainError(Exception):
    """The model needs torch; the message says why. Users do not see it, because torch is used then."""
