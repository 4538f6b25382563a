"""A collection as the source of a copy: in batches, so that memory stays bounded, with a description of its model."""

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
"""Most texts of a batch."""

BATCH_NUMBERS = 2**22
"""Most numbers in the vectors of a batch together: 16 MiB in float32."""

KEY = "samesense"
"""The key under which a store keeps the description of the model."""

Kind = Literal["integer", "real", "text", "boolean", "json"]


@dataclass(frozen=True)
class Rows:
    """A batch of texts: ids, texts, metadata, and unit vectors ``(texts, dim)``."""

    ids: list[int]
    texts: list[str]
    metadata: list[dict[str, Any]]
    vectors: npt.NDArray[np.floating]


@dataclass(frozen=True)
class Source:
    """The source of a copy.

    Attributes:
        model: name, identity and precision of the model that made the vectors.
        dim: dimensions of a vector.
        half: vectors are stored in float16, not float32.
        fields: type of the values of each name of metadata; ``json`` for lists, objects, values of several types, and
            whole numbers that neither 64 bits nor, beside decimals, a float would hold as they are.
        batches: reads the texts, in the order they were added.
    """

    model: Mapping[str, str]
    dim: int
    half: bool
    fields: Mapping[str, Kind]
    batches: Callable[[], Iterator[Rows]]


class Write(Protocol):
    """The function ``write`` of each store's module, which copies a collection into the store.

    OutputError if the table exists and ``overwrite`` is not given, or the store fails.
    """

    def __call__(self, source: Source, output: str, table: str, *, overwrite: bool) -> None:
        """Write all batches to ``table`` of the store that ``output`` names."""


def source_of(reader: Reader, about: About, on_progress: Callable[[int], None] | None) -> Source:
    """Return the state that ``reader`` holds as the source of a copy."""

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
    # A missing value fits into every type.
    fields = {name: _common_kind(kinds_of_name - {"null"}) for name, kinds_of_name in kinds.items()}
    return Source(model, about.dim, about.dtype == "float16", fields, batches)


_KINDS = {
    **{kind: kind for kind in ("integer", "large", "real", "text", "null")},
    "true": "boolean",
    "false": "boolean",
}
"""Types of values by their names in :meth:`Reader.kinds`; all others are ``json``."""


def _common_kind(kinds: set[str]) -> Kind:
    """Return the type that can hold all values of a name."""
    if kinds == {"integer", "real"}:
        return "real"
    if kinds <= {"integer", "large"} and kinds:
        return "integer"
    return next((kind for kind in ("real", "text", "boolean") if kinds == {kind}), "json")


def there_already(table: str) -> OutputError:
    """Return the error for a table that exists."""
    return OutputError(f"{table} is there already. Name another place or another `table`, or replace it: `overwrite`.")


@contextmanager
def refusals(store: str, table: str, *errors: type[Exception]) -> Iterator[None]:
    """Raise OutputError for a store's errors, with the reason but without the address, which may hold a password."""
    try:
        yield
    except errors as error:
        raise OutputError(f"{store} did not take the table {table!r}: {first_line(error)}") from error
