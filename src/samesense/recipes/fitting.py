"""Which method suits what was given: a file of settings says it, a teacher, or what the data are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from samesense.data.examples import Examples
from samesense.data.formats.memory import Source, short_name
from samesense.data.kinds import MEANINGS, Told, tell
from samesense.recipes.methods import DATA_TYPES, METHODS, Method
from samesense.recipes.settings import shipped

RAGGED = "supmpn-ragged"
"""Shipped settings for anchors with few partners: none of the paper's copies of the anchor."""


@dataclass(frozen=True)
class Fitting:
    """A method, and how it is to be taken for the data at hand."""

    method: Method
    form: str = ""  # shipped file of what differs from the method's own
    columns: str | None = None  # columns of the data, where they are given or guessed
    told: tuple[str, ...] = ()  # lines for people: what the data are, and by what that is told


def fitting_method(
    data: Sequence[Source] | Examples, config: str, given: Mapping[str, Any], columns: str | None = None
) -> Fitting:
    """Return the method that suits what was given, for ``--method auto``.

    A shipped file of settings names its method; a teacher is for RankCSE; data that are read already go to the first
    method that takes their class. For all else, what the sources hold decides; see :func:`samesense.data.kinds.tell`.

    Raises:
        DataError: if a source is of no known kind.
    """
    if config in shipped():
        return Fitting(METHODS[max((name for name in METHODS if config.startswith(name)), key=len)], columns=columns)
    if given.get("teacher"):
        return Fitting(METHODS["rankcse"], columns=columns)
    if isinstance(data, DATA_TYPES):
        return Fitting(next(method for method in METHODS.values() if isinstance(data, method.data)), columns=columns)
    return _by_kind({short_name(source): tell(source, columns) for source in data})  # type: ignore[union-attr]


def _by_kind(found: Mapping[str, Told]) -> Fitting:
    told = next(iter(found.values()))
    return Fitting(
        METHODS[MEANINGS[told.kind].method],
        RAGGED if told.kind in ("tuples", "classes") else "",
        told.columns,
        tuple(f"{name}: {one.line}; `method` overrides" for name, one in found.items()),
    )
