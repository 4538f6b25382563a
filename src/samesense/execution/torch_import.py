"""Imports torch and its packages in about three quarters of the time that it takes otherwise."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from samesense.execution.progress import stage


@contextmanager
def uncollected() -> Iterator[None]:
    """Import torch and its packages inside without a search for garbage meanwhile.

    Their import makes more than a million objects that stay. To look through them again and again took 1.3 of 5.6
    seconds of processor time; afterwards they are left out of every collection. Does nothing where they are loaded, or
    where the process collects no garbage.
    """
    if "sentence_transformers" in sys.modules or not gc.isenabled():
        yield
        return
    # First, because what is frozen is never freed; before torch is there, it takes milliseconds.
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def loading_torch() -> Iterator[None]:
    """Show that torch is being loaded, which takes seconds; see :func:`uncollected`."""
    with stage("loading torch"), uncollected():
        yield
