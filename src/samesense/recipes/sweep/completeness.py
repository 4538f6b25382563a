"""What is missing of a sweep: runs that failed, runs that wait, and what a table of the others may not say."""

from __future__ import annotations

from collections.abc import Sequence

from samesense.recipes.sweep.gather import CellResults, Tried

ENDED = ("finished", "failed")
"""What became of a run that is not tried again by itself."""


def planned_tests(cells: Sequence[CellResults]) -> dict[str, list[str]]:
    """Return the test sets of each data set, as far as one of its runs was begun."""
    tests: dict[str, list[str]] = {}
    for cell in cells:
        names = tests.setdefault(cell.entry.dataset, [])
        # Only the record of a run names its test sets.
        recorded = cell.record.get("rows", {}).get("tests", {})
        names.extend(name for name in recorded if name not in names)
    return tests


def waiting_runs(cells: Sequence[CellResults]) -> dict[tuple[str, str], int]:
    """Return how many planned runs are neither finished nor failed, by variant and test set."""
    tests = planned_tests(cells)
    counts: dict[tuple[str, str], int] = {}
    for cell in cells:
        if cell.status in ENDED:
            continue
        for name in tests[cell.entry.dataset]:
            key = cell.entry.variant, name
            counts[key] = counts.get(key, 0) + 1
    return counts


def incomplete_tests(cells: Sequence[CellResults], tuning: Sequence[Tried]) -> set[str]:
    """Return the test sets on which a planned run has no figure, so that rivals have other seeds there."""
    tests = planned_tests(cells)
    missing = {cell.entry.dataset for cell in cells if cell.status != "finished"}
    planned = {(cell.entry.dataset, cell.entry.variant) for cell in cells}
    # A variant that is not tuned yet has no cells that could be missing.
    missing |= {trial.dataset for trial in tuning if (trial.dataset, trial.variant) not in planned}
    return {name for dataset in missing for name in tests.get(dataset, [])}


def describe_incomplete(cells: Sequence[CellResults], tuning: Sequence[Tried]) -> str:
    """Return in a sentence how many runs are finished and which are missing; nothing for a whole sweep."""
    failed = _by_seeds([cell for cell in cells if cell.status == "failed"], "failed")
    missing = [*failed, *list_waiting(cells, tuning)]
    if not missing:
        return ""
    finished = sum(cell.status == "finished" for cell in cells)
    return f"Partial: {finished} of {len(cells)} runs finished. Missing: {'; '.join(missing)}."


CONTINUE = "The command that began it goes on: samesense sweep FILE --output FOLDER, with the same values of --set."
"""How a partial sweep is continued."""


def list_waiting(cells: Sequence[CellResults], tuning: Sequence[Tried]) -> list[str]:
    """Return the variants with unfinished cells that have not failed, and their seeds."""
    waiting = [trial for trial in tuning if trial.status not in ENDED]
    names = dict.fromkeys(f"{trial.dataset}, {trial.variant}" for trial in waiting)
    lines = [f"{name}: not tuned yet" for name in names]
    return lines + _by_seeds([cell for cell in cells if cell.status not in ENDED], "not run yet")


def describe_failures(cells: Sequence[CellResults], tuning: Sequence[Tried]) -> list[str]:
    """Return a line about each run that failed and why, those that were tried first."""
    lines = [
        f"{trial.dataset}, {trial.variant}: {trial.settings}: {trial.error}"
        for trial in tuning
        if trial.status == "failed"
    ]
    for cell in cells:
        if cell.status == "failed":
            seed = "" if cell.entry.seed is None else f", seed {cell.entry.seed}"
            lines.append(f"{cell.entry.dataset}, {cell.entry.variant}{seed}: {cell.error}")
    return lines


def _by_seeds(cells: Sequence[CellResults], state: str) -> list[str]:
    """Return a line for each data set and variant, with the seeds of its cells."""
    seeds: dict[str, list[str]] = {}
    for cell in cells:
        numbers = seeds.setdefault(f"{cell.entry.dataset}, {cell.entry.variant}", [])
        if cell.entry.seed is not None:
            numbers.append(str(cell.entry.seed))
    return [f"{name}{_seed_words(numbers)}: {state}" for name, numbers in seeds.items()]


def _seed_words(numbers: Sequence[str]) -> str:
    """Return the seeds of a variant; nothing for a start, which has none."""
    if not numbers:
        return ""
    if len(numbers) == 1:
        return f", seed {numbers[0]}"
    return f", seeds {', '.join(numbers)}"
