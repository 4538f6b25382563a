"""Change the model of a collection, and notice that a model has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from samesense.encoder.cosine import row_cosines
from samesense.errors import ConfigError, ModelError
from samesense.inference.collection import store
from samesense.inference.collection.collection import Collection
from samesense.inference.collection.conditions import Condition
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.reader import Reader
from samesense.inference.collection.writer import writing

CANARIES = 8
"""Number of texts that are encoded again to check that the model still gives their vectors."""

SAME = 0.98
"""Least cosine between the vectors of a text encoded twice; in int8 they vary with the other texts of a batch."""


def migrate(folder: Path, model: Embedder, *, on_progress: Callable[[int], None] | None = None) -> int:
    """Encode every text of a collection with another model; return the number of texts.

    The new vectors are written beside the old ones, which answer queries until all are written. Ids and metadata stay.

    Args:
        folder: the collection.
        model: the new model.
        on_progress: called with the number of texts just written.

    Raises:
        ConfigError: if the model is that of the collection already.
        ModelError: if the model gives unusable vectors.
        OutputError: if another process keeps writing.
    """
    with writing(folder) as writer:
        old = writer.about
        if old.identity == model.identity:
            raise ConfigError(f"{model.name!r} is the model of the collection already. Give another.")
        writer.build(model, old.dtype, old.approximate)
        # An id is not given again, even if its text was deleted.
        writer.about.next_id = old.next_id
        # Another connection, which reads the old state until this transaction is committed.
        count = writer.insert(Collection.open(folder), model, False, on_progress)
        writer.derive()
        return count


def check_vectors(folder: Path, model: Embedder) -> float:
    """Encode a few texts of a collection again; return the lowest cosine with their vectors, 1 without texts.

    The same weights and settings may give other vectors with other library versions, on another machine, or where the
    model is a function.

    Raises:
        ModelError: if the model is not that of the collection, or its vectors have changed.
    """
    Collection.open(folder).check_model(model)
    reader = Reader(folder)
    with reader.state() as about:
        ids, positions = store.matching_positions(reader.db, Condition(), about.rows)
        if not len(ids):
            return 1.0
        # With few texts several places are the same.
        some = np.unique(np.linspace(0, len(ids) - 1, CANARIES).astype(np.intp))
        rows = reader.rows(ids[some].tolist())
        old = reader.vectors[positions[some]]
    texts = [rows[number][0] for number in ids[some].tolist()]
    lowest = float(row_cosines(model.unit(texts), old).min())
    if lowest < SAME:
        raise ModelError(
            f"The model {model.name!r} gives other vectors now than when {folder} was built: the lowest of "
            f"{len(texts)} cosines is {lowest:.3f}. Use what computed them, or rebuild the collection."
        )
    return lowest
