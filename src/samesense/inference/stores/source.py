"""A collection as a store takes it: in batches, so that memory stays bounded, and with what its model is."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from samesense.errors import OutputError
from samesense.failures import first_line
from samesense.inference.collection.reader import Reader
from samesense.inference.collection.store import About

BATCH_ROWS = 8192
"""Texts of a batch, at most."""

BATCH_NUMBERS = 2**22
"""Numbers of all vectors of a batch, at most: 16 MiB in float32."""

KEY = "samesense"
"""Under which a store keeps what the model is."""

Kind = Literal["integer", "real", "text", "boolean", "json"]


@dataclass(frozen=True)
class Rows:
    """Some texts: ids, texts, metadata, and unit vectors ``(texts, dim)``."""

    ids: list[int]
    texts: list[str]
    metadata: list[dict[str, Any]]
    vectors: npt.NDArray[np.floating]


@dataclass(frozen=True)
class Source:
    """What is copied.

    Attributes:
        model: name, identity and precision of the model that made the vectors.
        dim: numbers of a vector.
        half: vectors are kept in float16, not float32.
        fields: of each name of metadata what its values are; ``json`` for lists, objects, and values of several kinds.
        batches: reads the texts, in the order they were added.
    """

    model: Mapping[str, str]
    dim: int
    half: bool
    fields: Mapping[str, Kind]
    batches: Callable[[], Iterator[Rows]]


class Write(Protocol):
    """Copies a collection into one kind of store; each module of a store has one.

    OutputError if there is a table of this name and no ``overwrite``, or the store does not take the collection.
    """

    def __call__(self, source: Source, output: str, table: str, *, overwrite: bool) -> None:
        """Write all batches to ``table`` of the store that ``output`` names."""


def source_of(reader: Reader, about: About, on_progress: Callable[[int], None] | None) -> Source:
    """Return what is copied, of the state that ``reader`` holds."""

    def batches() -> Iterator[Rows]:
        for records, vectors in reader.batches(max(1, min(BATCH_ROWS, BATCH_NUMBERS // max(1, about.dim)))):
            ids, texts, metadata = zip(*records, strict=True)
            yield Rows(list(ids), list(texts), [json.loads(fields_json) for fields_json in metadata], vectors)
            if on_progress is not None:
                on_progress(len(ids))

    model = {"model": about.model, "identity": about.identity, "precision": about.precision}
    kinds: dict[str, set[str]] = {}
    for name, kind in reader.kinds():
        kinds.setdefault(name, set()).add(_KINDS.get(kind, "json"))
    fields = {name: _common(kinds_of_name - {"null"}) for name, kinds_of_name in kinds.items()}
    return Source(model, about.dim, about.dtype == "float16", fields, batches)


_KINDS = {"integer": "integer", "real": "real", "text": "text", "true": "boolean", "false": "boolean", "null": "null"}


def _common(found: set[str]) -> Kind:
    if found == {"integer", "real"}:
        return "real"
    return next((kind for kind in ("integer", "real", "text", "boolean") if found == {kind}), "json")


def there_already(table: str) -> OutputError:
    """Return what is said of a table that would be written over."""
    return OutputError(f"{table} is there already. Name another place or another `table`, or replace it: `overwrite`.")


@contextmanager
def refusals(store: str, table: str, *errors: type[Exception]) -> Iterator[None]:
    """Say that a store did not take a table, and why; not where it is, as addresses hold passwords."""
    try:
        yield
    except errors as error:
        raise OutputError(f"{store} did not take the table {table!r}: {first_line(error)}") from error
