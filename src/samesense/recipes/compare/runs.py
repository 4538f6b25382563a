"""The training runs whose learning curves stand beside the models."""

from __future__ import annotations

from collections.abc import Sequence

from samesense.errors import ConfigError
from samesense.recipes.compare.models import name_models
from samesense.reports.store import Run, read_run


def read_runs(specs: Sequence[str]) -> list[Run]:
    """Read run folders; ``NAME=FOLDER`` names one, and runs of one name are seeds of one thing.

    ConfigError if runs of one name have one seed, or differ in another setting.
    """
    runs = [read_run(folder, name) for name, folder in name_models(specs)]
    first: dict[str, Run] = {}
    names: set[tuple[str, str]] = set()
    for run in runs:
        first_settings = first.setdefault(run.name, run).settings
        settings = run.settings
        differing = [
            key
            for key in {**first_settings, **settings}
            if key != "seed" and first_settings.get(key) != settings.get(key)
        ]
        seed = run.name, repr(settings.get("seed"))
        if differing or seed in names:
            if differing:
                why = f"differ in {', '.join(differing)}"
            else:
                why = f"have seed {settings.get('seed')}"
            raise ConfigError(
                f"Runs of one name are seeds of one thing; two named {run.name!r} {why}. Give them names of their own, "
                "as in: `runs` first=FOLDER second=FOLDER"
            )
        names.add(seed)
    return runs


def without_curve(runs: Sequence[Run]) -> list[str]:
    """Return a line about the runs that no learning curve shows."""
    names = dict.fromkeys(run.name for run in runs if run.curve is None)
    return [f"{name}: no learning curve, since it was never evaluated on dev." for name in names]
