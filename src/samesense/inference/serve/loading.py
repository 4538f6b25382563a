"""From names of folders to what a server needs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.errors import ConfigError, ModelError
from samesense.inference.calibration.calibration import Calibration
from samesense.inference.calibration.storage import home_of, read
from samesense.inference.collection.collection import Collection, Found
from samesense.inference.collection.embedder import embedder_of
from samesense.inference.serve.service import Search
from samesense.types import Embeddings, Score

if TYPE_CHECKING:
    from samesense.inference.models.model import Model

KEY_VARIABLE = "SAMESENSE_API_KEY"


def reranker_of(model: Model) -> Score:
    """Return the score of a cross-encoder, which remembers nothing between calls, as a server runs for long."""
    if model.embeds:
        raise ModelError(f"A reranker must be a cross-encoder; {model.name!r} is none.")
    return model.scores


def open_search(folder: Path, model: Model) -> Search:
    """Return the search in a collection that was built with ``model``."""
    from samesense.inference.collection.writer import check_model

    collection = Collection.open(folder)
    check_model(collection.manifest, embedder_of(model, "the model to serve"), folder)
    return search_in(collection)


def open_calibration(model: str, file: Path | None) -> Calibration | None:
    """Return the calibration of ``file``, or the one in the model's folder, or none if neither is there."""
    home = home_of(model)
    if file is None and (home.kept is None or not home.kept.is_file()):
        return None
    return read(home, file)


def search_in(collection: Collection) -> Search:
    """Return the search in a collection; what others add or delete meanwhile shows at once."""

    def search(queries: Embeddings, top: int, where: Mapping[str, Any] | None) -> list[list[Found]]:
        collection.refresh()
        return collection.search(queries, top=top, where=where)

    return search


def read_keys(file: Path | None) -> list[str]:
    """Return the keys of a file, one a line, or the one of the environment; none where neither is given."""
    if file is None:
        given = os.environ.get(KEY_VARIABLE)
        if given is not None and not given.strip():
            raise ConfigError(f"{KEY_VARIABLE} is set and empty, which would let everyone in. Give a key, or unset it.")
        return [] if given is None else _checked([given.strip()], KEY_VARIABLE)
    try:
        keys = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read keys from {file}; give a text file with one key a line.") from error
    if not keys:
        raise ConfigError(f"There must be a key in {file}, one a line; it is empty.")
    return _checked(keys, str(file))


def _checked(keys: list[str], place: str) -> list[str]:
    """Refuse keys that clients cannot send alike, without showing them."""
    for number, key in enumerate(keys, 1):
        if not (key.isascii() and key.isprintable()):
            raise ConfigError(f"A key must be of ASCII letters, digits and signs; key {number} of {place} is not.")
    return keys
