"""SupMPN, and the losses it is compared with: from anchors with positives and negatives to an evaluated, usable model.

    samesense train nli.jsonl.gz --method supmpn --dev dev.tsv --output runs/supmpn
    samesense train lists.jsonl --method supmpn --tuples ragged --output runs/ragged

Source: Dehghan and Amasyali 2022 (SupMPN); settings in ``configs/supmpn.toml``, which says where they come from.
Differs: see :class:`samesense.data.tuples.completion.Completion` for what the paper leaves open; a negative that is the
    same text as the anchor or one of its positives does not count, unless ``false_negative_filter`` is off.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from samesense.data.tuples.data import TupleData
from samesense.data.tuples.read import read_tuples
from samesense.recipes.runner import How, Prepared, Trained, run_bi
from samesense.recipes.supmpn.parts import prepare, sized
from samesense.recipes.supmpn.settings import SupmpnSettings

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

__all__ = ["SupmpnSettings", "read", "run"]


def read(sources: Sequence[str], settings: SupmpnSettings) -> TupleData:
    """Return the training data; see :func:`samesense.data.tuples.read.read_tuples`."""
    return read_tuples(
        sources,
        merge=settings.merge,
        label_order=settings.label_order,
        drop_bad_rows=settings.drop_bad_rows,
    )


def run(
    train: TupleData,
    settings: SupmpnSettings,
    output: Path,
    **how: Unpack[How],
) -> Trained:
    """Train, select on dev, evaluate on test, and leave ``output/model`` with everything that led to it beside it.

    Args:
        train: anchors with positives and negatives.
        settings: see :class:`SupmpnSettings`; ``sentences_per_step`` decides the batch size.
        output: run folder; see :func:`samesense.recipes.runner.run`.
        how: see :class:`~samesense.recipes.runner.How`.

    Raises:
        ConfigError, DataError, ModelError, OutputError: before the first step, where a run could not end well.
    """
    settings = sized(settings, train)

    def prepared(model: SentenceTransformer) -> Prepared:
        return prepare(train, settings, model)

    return run_bi("supmpn", settings, output, train, prepared, **how)
