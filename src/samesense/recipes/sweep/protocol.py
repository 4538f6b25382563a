"""How the runs of a sweep were made, in the sentences of a table's caption."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from samesense.recipes.sweep.gather import CellResults, Tried

DEV = {
    "none": "no dev pairs, so the last state is tested",
    "hold": "held out of the training pairs, apart by sentences",
}
"""Where the pairs come from that choose a checkpoint, by the beginning of ``dev`` in the file."""

CAPTION_SETTINGS = ("learning_rate", "batch_size")
"""Settings that a caption names for each variant, where they differ."""


def protocol_sentences(
    cells: Sequence[CellResults], tuning: Sequence[Tried], dev_sources: Mapping[str, str], skipped: Sequence[str] = ()
) -> list[str]:
    """Return what a reader must know to run a sweep again: model, seeds, steps, settings, data, metric and version.

    ``dev_sources`` is ``dev`` of each data set as the file has it; ``skipped`` begins each line with the data set and
    the variant that cannot be trained on it. Without a trained run there is nothing to say.
    """
    trained = [cell for cell in cells if cell.run is not None]
    if not trained:
        return []
    settings = "; ".join(_setting(trained, name) for name in CAPTION_SETTINGS)
    sentences = [f"{_starts(trained)}; {_seeds(trained)}; {_steps(trained)}; {settings}{_tuned(tuning)}."]
    sentences += _label_use(trained)
    sentences += _data(cells, dev_sources)
    sentences.append(f"Scores: {_listed(cell.results[0].protocol for cell in trained if cell.results)}.")
    if skipped:
        names = "; ".join(line.partition(": ")[0] for line in skipped)
        sentences.append(f"Left out, since the loss cannot be trained on the labels: {names}.")
    versions = _listed(cell.environment["samesense"] for cell in trained if "samesense" in cell.environment)
    if versions:
        sentences.append(f"samesense {versions}.")
    return sentences


def _starts(trained: Sequence[CellResults]) -> str:
    starts = _listed(cell.record["start"] for cell in trained)
    layers = sorted({cell.record["layers"] for cell in trained if cell.record["layers"] is not None})
    if not layers:
        return f"Start model {starts}"
    return f"Start model {starts} (first {_listed(layers)} layers)"


def _seeds(trained: Sequence[CellResults]) -> str:
    seeds = sorted({cell.entry.seed for cell in trained if cell.entry.seed is not None})
    if len(seeds) == 1:
        return f"seed {seeds[0]}"
    return f"seeds {_listed(seeds)}"


def _listed(values: Any) -> str:
    return ", ".join(map(str, dict.fromkeys(values)))


def _steps(trained: Sequence[CellResults]) -> str:
    steps = sorted({int(cell.outcome["steps"]) for cell in trained if "steps" in cell.outcome})
    if not steps:
        return "steps unknown"
    if len(steps) == 1:
        return f"{steps[0]:,} steps"
    return f"{steps[0]:,} to {steps[-1]:,} steps"


def _setting(trained: Sequence[CellResults], name: str) -> str:
    """Return a setting, or its value for each variant where they differ."""
    values: dict[str, dict[str, None]] = {}
    for cell in trained:
        value = None if cell.run is None else cell.run.settings.get(name)
        text = "of its own" if value is None else str(value)
        values.setdefault(text, {})[cell.entry.variant] = None
    words = name.replace("_", " ")
    if len(values) == 1:
        return f"{words} {next(iter(values))}"
    return f"{words} " + ", ".join(f"{value} ({_listed(variants)})" for value, variants in values.items())


def _tuned(tuning: Sequence[Tried]) -> str:
    settings = [setting for trial in tuning for setting in trial.settings.split(", ")]
    names = dict.fromkeys(setting.partition(" ")[0].replace("_", " ") for setting in settings)
    if not names:
        return ""
    return f"; {' and '.join(names)} chosen on dev of {len(tuning)} runs with the first seed"


def _label_use(trained: Sequence[CellResults]) -> list[str]:
    """Return in how many bins scores were cut, for variants that cut them."""
    bins: dict[str, None] = {}
    for cell in trained:
        label_bins = None if cell.run is None else cell.run.settings.get("bins")
        if label_bins is not None:
            if isinstance(label_bins, int):
                width = f"{label_bins} bins of equal width"
            else:
                width = f"bins with the edges {_listed(label_bins)}"
            bins[f"{cell.entry.variant} is trained on scores in {width}."] = None
    return list(bins)


def _data(cells: Sequence[CellResults], dev_sources: Mapping[str, str]) -> list[str]:
    """Return for each data set how many pairs train, choose the checkpoint, and test."""
    described: dict[str, str] = {}
    for cell in cells:
        name = cell.entry.dataset
        rows = cell.record.get("rows")
        # A start trains on nothing, so that a trained cell has to tell.
        if rows is None or name in described or cell.run is None:
            continue
        selection = DEV["none"]
        if rows["dev"]:
            # The kind of `hold 0.1` is its first word.
            kind, _, _ = dev_sources.get(name, "").partition(" ")
            origin = DEV.get(kind, "of a source of their own")
            selection = f"{rows['dev']:,} dev ({origin}; they choose the checkpoint)"
        tests = ", ".join(
            f"{count:,} test" if test == name else f"{count:,} test ({test})" for test, count in rows["tests"].items()
        )
        described[name] = f"Pairs of {name}: {rows['train']:,} training, {selection}, {tests} (they choose nothing)."
    return list(described.values())
