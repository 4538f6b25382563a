"""What a model trained with ``matryoshka`` is worth at each width: its vectors cut to their first numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from samesense.data import PairData
from samesense.evaluation.sts import evaluate_pairs
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.reports.tables import markdown
from samesense.types import Result

TASK = "matryoshka"
"""Task of the results at each width, which are beside those of the model itself."""


def evaluate_widths(model: Model, data: PairData, widths: Sequence[int]) -> list[Result]:
    """Return the figures of a model as it is, and at each width; its texts are encoded once."""
    model.remember()
    models = [model, *(load(model, dim=width) for width in widths)]
    return [replace(result, task=TASK) for width_model in models for result in evaluate_pairs(width_model, data)]


def described(results: Sequence[Result], widths: Sequence[int]) -> str:
    """Return the Spearman of each width as a table for the card; ``results`` are those of :func:`evaluate_widths`."""
    spearman_rows = [row for row in results if (row.metric, row.subset) == ("spearman", "all")]
    rows = [
        [width, row.dataset, f"{100 * row.value:.2f}"]
        for width, row in zip(["all", *map(str, widths)], spearman_rows, strict=True)
    ]
    return "Spearman x100 with the first numbers of each vector:\n\n" + markdown(
        ["dimensions", "data", "x100"], rows, numeric=("dimensions", "x100")
    )
