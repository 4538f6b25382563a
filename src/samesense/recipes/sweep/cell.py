"""One cell: trained or taken up where it was left, judged, and left with figures and scores but without its model.

cell.json  manifest.json  history.jsonl  results.jsonl  scores.npz  model/ (until it is judged, or kept)
"""

from __future__ import annotations

import logging
import re
import shutil
import time
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from samesense.errors import ConfigError, SamesenseError
from samesense.files import read_json, write_json
from samesense.recipes.sweep.file import LAYERS
from samesense.recipes.sweep.parts import Parts
from samesense.recipes.sweep.plan import Cell, with_start
from samesense.recipes.sweep.verdict import judge, trained, untrained, write_scores
from samesense.reports import append_results
from samesense.training import manifest
from samesense.types import Precision

logger = logging.getLogger(__name__)

RECORD = "cell.json"
SCORES = "scores.npz"
RESULTS = "results.jsonl"


@dataclass(frozen=True)
class Work:
    """A cell, its data, its folder, and the arithmetic in which it is judged."""

    cell: Cell
    parts: Parts
    folder: Path
    judging: Precision


def do(work: Work) -> str:
    """Run a cell to its end, and return its status: ``"finished"``, ``"failed"`` or ``"interrupted"``.

    What it raises is written into its record, and the caller goes on. After Ctrl-C it can be resumed.
    """
    started, cell = time.perf_counter(), work.cell
    record(work, "running")
    try:
        if cell.seed is None:
            candidate = untrained(cell.variant, cell.settings, work.judging)
        elif _train(work):
            candidate = trained(cell.variant, cell.seed, work.folder / "model", work.judging)
        else:
            return record(work, "interrupted")
        results, scores = judge(candidate, work.parts)
        write_scores(work.folder / SCORES, scores)
        (work.folder / RESULTS).unlink(missing_ok=True)
        append_results(work.folder / RESULTS, results)
    except KeyboardInterrupt:
        return record(work, "interrupted")
    except Exception as error:  # recorded; one failing cell must not end the sweep
        text = str(error) if isinstance(error, SamesenseError) else "".join(traceback.format_exception(error))
        return record(work, "failed", error=text.strip())
    return record(work, "finished", seconds=round(time.perf_counter() - started, 1))


def status_of(folder: Path) -> str:
    """Return what became of the cell in a folder; ``"absent"`` if it was never begun."""
    return str(read_record(folder).get("status", "absent"))


def read_record(folder: Path) -> dict[str, Any]:
    """Return what a cell has written of itself; nothing if it was never begun.

    Raises:
        DataError: if the file is broken.
    """
    path = folder / RECORD
    if not path.is_file():
        return {}
    return read_json(path, f"Delete the folder {folder} to run this cell anew.")


def record(work: Work, status: str, **more: Any) -> str:
    """Write the record of the cell; returns ``status``."""
    cell = work.cell
    content = {
        "status": status,
        "variant": cell.variant,
        "dataset": cell.dataset,
        "seed": cell.seed,
        "start": _short(str(cell.given.get("model", "default"))),
        "settings": {key: value for key, value in cell.given.items() if key not in ("model", LAYERS)},
        "layers": cell.layers,
        "rows": _rows(work.parts),
        "identity": cell.identity,
        **more,
    }
    write_json(work.folder / RECORD, content, sync=True)
    return status


def _short(model: str) -> str:
    return Path(model).name if Path(model).exists() else model


def _rows(parts: Parts) -> dict[str, Any]:
    dev = 0 if parts.dev is None else len(parts.dev)
    return {"train": len(parts.train), "dev": dev, "tests": {name: len(data) for name, data in parts.tests.items()}}


def _train(work: Work) -> bool:
    """Train the cell; returns False if it was interrupted in an orderly way."""
    if (work.folder / "model").is_dir() and _manifest(work.folder).get("status") == "finished":
        return True  # only judging is left
    if (work.folder / manifest.FILE).is_file():
        try:
            return _fitted(work, resume=True)
        except ConfigError as error:
            logger.info(f"begun anew: {error}")
    return _fitted(work, overwrite=True)


def _fitted(work: Work, *, resume: bool = False, overwrite: bool = False) -> bool:
    cell, parts = work.cell, work.parts
    trained = cell.method.run(
        parts.train, cell.settings, work.folder, dev=parts.dev, resume=resume, overwrite=overwrite
    )
    return not trained.outcome.interrupted


def _manifest(folder: Path) -> dict[str, Any]:
    return manifest.read(folder) if (folder / manifest.FILE).is_file() else {}


def drop_model(folder: Path) -> None:
    """Delete the model of a finished cell; everything else stays."""
    shutil.rmtree(folder / "model", ignore_errors=True)


def started_from(cell: Cell, output: Path) -> Cell:
    """Return the cell with its start model cut to the layers it keeps, which is made on demand below ``output``."""
    if cell.layers is None:
        return cell
    from samesense.encoder.build import build
    from samesense.encoder.storage import save
    from samesense.encoder.students import first_layers

    start = cell.identity["start"]  # a name on the hub or, of a folder, the hash of its files
    short = start[:16] if re.fullmatch("[0-9a-f]{64}", start) else start.replace("/", "--")
    folder = output / "starts" / f"{short}-first-{cell.layers}"
    if not folder.is_dir():
        save(first_layers(build(cell.settings.model, device="cpu"), cell.layers), folder, card=False)
    return with_start(cell, str(folder))
