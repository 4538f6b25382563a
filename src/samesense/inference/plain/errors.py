"""Why a model is left to torch."""

from __future__ import annotations


class NotPlainError(Exception):
    """The model has something that only torch computes; the message says what. Nobody sees it: torch is taken."""
