"""The end of a race: the recommended models in their folders, evaluated on test, and the leaderboard written."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from samesense.data import PairData
from samesense.encoder.assembly.build import build
from samesense.encoder.saving.storage import save
from samesense.evaluation.sts import evaluate_pairs
from samesense.files import replacing_folder, write_text
from samesense.inference.models.load import load
from samesense.recipes.compare.cost import measure_costs
from samesense.recipes.race.board import Line, RaceResult, cpu_of, good_enough, quality_of
from samesense.recipes.race.cells import Cells
from samesense.recipes.race.clock import RESERVE_SHARE
from samesense.recipes.train_command import train_command
from samesense.results.results import Results
from samesense.types import Precision, Result

BOARD = "leaderboard.md"

TIMING_SECONDS = 2.5
"""Seconds in which a model is opened and timed in turns with others, about."""

LEAST_TIMED = 3
"""Models that are timed in turns, however short the budget is."""

MOST_TIMED = 8
"""Models that are timed in turns, at most; between the two as the budget allows."""


def finish(cells: Cells) -> RaceResult:
    """Return the result of a race whose runs are all made.

    Models are put into their folders, and evaluated on test, once: again only if others are chosen, or test is another.
    """
    state = cells.state
    request = cells.request
    outcome = state.result or {}
    board = sorted(state.board(), key=lambda line: -line.dev)
    rounds, disturbed = time_models(cells, board, outcome)
    lines = [_timed(line, rounds.get(str(line.place), [])) for line in board]
    quality = quality_of(lines)
    cpu = cpu_of(lines, request.cpu_drop)
    test = request.planned.test
    models = [quality.name, cpu.name]
    if models != outcome.get("models") or (test is not None and test.sha256 != outcome["test_sha256"]):
        _put(quality, request.output / "model")
        # Another run of this race may have had another one.
        shutil.rmtree(request.output / "cpu", ignore_errors=True)
        if cpu != quality:
            _put(cpu, request.output / "cpu")
        test_rows = []
        if test is not None:
            # One model may be both, and is tested once.
            test_rows = [row for line in dict.fromkeys([quality, cpu]) for row in _test(line, test)]
        outcome = {
            "models": models,
            "test": [row.to_dict() for row in test_rows],
            "spent": cells.clock.spent,
            "test_sha256": None if test is None else test.sha256,
            "speeds": rounds,
            "disturbed": disturbed,
        }
        state.result = outcome
        cells.save()
    elif rounds != outcome.get("speeds"):
        outcome = {**outcome, "speeds": rounds, "disturbed": disturbed}
        state.result = outcome
        cells.save()
    result = RaceResult(
        folder=request.output,
        lines=lines,
        quality=quality,
        cpu=cpu,
        spent=outcome["spent"],
        budget=request.budget,
        test=Results(Result(**row) for row in outcome["test"]),
        notes=state.notes,
        disturbed=disturbed,
        next_step=_next_step(cells, quality),
    )
    write_text(request.output / BOARD, result.markdown())
    write_text(request.output / "leaderboard.json", json.dumps(result.to_dict(), indent=2, ensure_ascii=False) + "\n")
    return result


def time_models(cells: Cells, lines: Sequence[Line], outcome: Mapping[str, Any]) -> tuple[dict[str, list[float]], str]:
    """Return the sentences a second in each round of the models by their place, and why the machine was not quiet.

    The best model is timed in turns with the candidates for a CPU, the first of them by the speeds that each had by
    itself, unless ``outcome`` has the speeds of them all.
    """
    best = quality_of(lines)
    others = [line for line in good_enough(lines, cells.request.cpu_drop) if line != best]
    others.sort(key=lambda line: -line.speed)
    most = min(MOST_TIMED, max(LEAST_TIMED, int(RESERVE_SHARE * cells.request.budget / TIMING_SECONDS)))
    timed = [best, *others[: most - 1]]
    if {str(line.place) for line in timed} <= outcome.get("speeds", {}).keys():
        return outcome["speeds"], outcome["disturbed"]
    models = [load(str(line.place), backend=line.backend) for line in timed]
    costs = measure_costs(list(zip([str(line.place) for line in timed], models, strict=True)), cells.dev_texts)
    rounds = {
        str(line.place): [] if cost.speed is None else list(cost.speed.rounds)
        for line, cost in zip(timed, costs, strict=True)
    }
    return rounds, next((cost.disturbed for cost in costs if cost.disturbed), "")


def _next_step(cells: Cells, quality: Line) -> str:
    """Return how the best start model is trained on all pairs, where those of dev were held out; else nothing."""
    if not cells.request.planned.held_out or quality.form != "trained":
        return ""
    start = cells.state.entrant(quality.name).start
    return (
        "dev was held out, so no run was trained on it. To train the best start model on all pairs: "
        f"{train_command({'model': start.model})}"
    )


def _timed(line: Line, rounds: Sequence[float]) -> Line:
    """Return a line with the speed that was measured in turns, if it was."""
    timed = replace(line, rounds=tuple(rounds))
    if timed.timed is None:
        return timed
    return replace(timed, speed=round(timed.timed.median, 1))


def _put(line: Line, target: Path) -> None:
    """Write a model to a folder, ready for use."""
    location = Path(str(line.place))
    if line.form == "start":
        # A start may be a name on the hub, which has no folder to copy.
        save(build(str(line.place)), target, overwrite=True)
        return
    with replacing_folder(target) as folder:
        # The temporary folder is there already.
        shutil.copytree(location, folder, dirs_exist_ok=True)


def _test(line: Line, test: PairData) -> Results:
    # The precision is that of torch, which has no part in an exported graph.
    precision: Precision = "float32" if line.backend == "auto" else "auto"
    model = load(str(line.place), name=line.name, backend=line.backend, precision=precision)
    return evaluate_pairs(model, test)
