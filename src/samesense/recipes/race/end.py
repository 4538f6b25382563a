"""The end of a race: the recommended models in their folders, evaluated on test, and the leaderboard written."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from samesense.data import PairData
from samesense.encoder.assembly.build import build
from samesense.encoder.saving.storage import save
from samesense.evaluation.sts import evaluate_pairs
from samesense.files import replacing_folder, write_text
from samesense.inference.models.load import load
from samesense.recipes.race.board import Line, RaceResult, cpu_of, quality_of
from samesense.recipes.race.cells import Cells
from samesense.results import Results
from samesense.types import Result

BOARD = "leaderboard.md"


def finish(cells: Cells) -> RaceResult:
    """Return the result of a race whose runs are all made.

    Models are put into their folders, and evaluated on test, once: again only if others are chosen, or test is another.
    """
    state, asked = cells.state, cells.asked
    lines = sorted(state.board(), key=lambda line: -line.dev)
    quality, cpu = quality_of(lines), cpu_of(lines, asked.cpu_drop)
    test = asked.planned.test
    models = [quality.name, cpu.name]
    known = state.result or {}
    if models != known.get("models") or (test is not None and test.sha256 != known["test_sha256"]):
        _put(quality, asked.output / "model")
        shutil.rmtree(asked.output / "cpu", ignore_errors=True)
        if cpu != quality:
            _put(cpu, asked.output / "cpu")
        found = [] if test is None else [row for line in dict.fromkeys([quality, cpu]) for row in _test(line, test)]
        known = state.result = {
            "models": models, "test": [row.to_dict() for row in found], "spent": cells.clock.spent,
            "test_sha256": None if test is None else test.sha256,
        }  # fmt: skip
        cells.save()
    result = RaceResult(
        folder=asked.output, lines=lines, quality=quality, cpu=cpu, spent=known["spent"], budget=asked.budget,
        test=Results(Result(**row) for row in known["test"]), notes=state.notes,
    )  # fmt: skip
    write_text(asked.output / BOARD, f"{result}\n")
    write_text(asked.output / "leaderboard.json", json.dumps(result.to_dict(), indent=2, ensure_ascii=False) + "\n")
    return result


def _put(line: Line, target: Path) -> None:
    """Write a model to a folder, ready for use."""
    place = Path(str(line.place))
    if line.form == "start":
        save(build(str(line.place)), target, overwrite=True)
        return
    with replacing_folder(target) as folder:
        shutil.copytree(place, folder, dirs_exist_ok=True)


def _test(line: Line, test: PairData) -> Results:
    backend = {"backend": "onnx-int8"} if line.form == "int8" else {"precision": "float32"}
    return evaluate_pairs(load(str(line.place), name=line.name, **backend), test)  # type: ignore[arg-type]
