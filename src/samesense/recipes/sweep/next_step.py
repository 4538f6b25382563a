"""What to do after a sweep: train by the settings that are the best on dev."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean
from typing import Any

from samesense.recipes.sweep.gather import CellResults
from samesense.recipes.train_command import train_command
from samesense.results.markup import code, plain


def describe_next_steps(
    cells: Sequence[CellResults], config: str, reading: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Return for each data set, in Markdown, the variant that is best on dev and the command that trains like it.

    Nothing is said of a data set without dev. ``cells`` are those of a whole sweep, ``config`` is what all their
    settings come from, and ``reading`` has the options by which each data set is read.
    """
    trained = [cell for cell in cells if cell.run is not None and cell.run.curve is not None]
    lines = []
    for dataset in dict.fromkeys(cell.entry.dataset for cell in trained):
        variants: dict[str, list[CellResults]] = {}
        for cell in trained:
            if cell.entry.dataset == dataset:
                variants.setdefault(cell.entry.variant, []).append(cell)
        scores = {variant: _mean_dev(variant_cells) for variant, variant_cells in variants.items()}
        best = max(scores, key=lambda variant: scores[variant])
        score = f"{100 * scores[best]:.2f}"
        if len(variants[best]) > 1:
            score += f", mean of {len(variants[best])} seeds"
        sentence = f"On {dataset}, {best} is the best on dev ({score}). To train by its settings:"
        settings = {**reading[dataset], **_stated_settings(variants[best][0], config)}
        lines.append(f"{plain(sentence)} {code(train_command(settings))}")
    return lines


def _mean_dev(cells: Sequence[CellResults]) -> float:
    """Return the best score on dev, the mean over the seeds of a variant."""
    return mean(cell.run.curve.best[1] for cell in cells if cell.run is not None and cell.run.curve is not None)


def _stated_settings(cell: CellResults, config: str) -> dict[str, Any]:
    """Return what the file of the sweep sets for a cell, as ``samesense train`` takes it."""
    settings = dict(cell.record["settings"])
    # The record has a start by its short name; the manifest has its place, also of one that was cut.
    if cell.run is not None and cell.run.settings["model"] != "default":
        settings = {"model": cell.run.settings["model"], **settings}
    if config != "auto":
        settings = {"config": config, **settings}
    return settings
