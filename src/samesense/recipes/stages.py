"""Stages of a making: each is done once for its inputs, resumed if it was stopped, and never silently lost."""

from __future__ import annotations

import json
import logging
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import Field

from samesense.errors import OutputError
from samesense.execution.progress import stage
from samesense.execution.timing import time_summary
from samesense.failures import shorten_text
from samesense.locks import is_empty
from samesense.places import check_folder
from samesense.schemas import Record, read_object
from samesense.training import manifest

logger = logging.getLogger(__name__)


class Interrupted(Exception):  # noqa: N818 - no error: everything is kept
    """A stage was stopped by its user."""


class Stage(Record):
    """What a manifest says of one stage."""

    inputs: dict[str, Any]
    status: str
    summary: list[str] = Field(default_factory=list)
    seconds: float = 0.0


class StagesRecord(Record):
    """A manifest of stages."""

    method: str = ""
    stages: dict[str, Stage] = Field(default_factory=dict)


class Stages:
    """The stages in a folder, recorded in its ``manifest.json``.

    ``record`` is the manifest of this run; stages done by earlier ones are taken over.
    """

    def __init__(self, folder: Path, record: dict[str, Any], *, overwrite: bool) -> None:
        before = read_stages(folder, record["method"])
        self.folder = folder
        self.overwrite = overwrite
        self.record = record | {"stages": before.get("stages", {})}
        self.spent: dict[str, float] = {}  # seconds of the stages that this run did

    def run(self, name: str, inputs: dict[str, Any], outputs: Sequence[str], make: Callable[[], list[str]]) -> None:
        """Do a stage, unless it was done with these inputs.

        ``inputs`` is all that decides what the stage makes, as JSON types. ``outputs``, temporary files too, are
        removed before they are made with other inputs; the first of them is there once the stage is done. ``make``
        makes them, or goes on making them, and returns lines about the outcome.
        """
        # As JSON gives them back: a tuple equals the list that was stored.
        inputs = json.loads(json.dumps(inputs))
        before = self.record["stages"].get(name)
        gone = not all((self.folder / output).exists() for output in outputs[:1])
        if before is not None and before["inputs"] == inputs and before["status"] == "done" and not gone:
            logger.info(f"{name}: there already; {'; '.join(before['summary'])}")
            return
        # Left in the middle of a removal, or deleted since: it is made from the beginning.
        if before is not None and (before["status"] == "removed" or (before["status"] == "done" and gone)):
            self._remove(outputs)
            before = None
        if before is not None and before["inputs"] != inputs:
            self._replace(name, before["inputs"], inputs, outputs)
        started = time.perf_counter()
        if before is not None and before["inputs"] == inputs:
            logger.info(f"{name}: going on")
        else:
            logger.info(f"{name}: begins")
        self._note(name, {"inputs": inputs, "status": "running"})
        with stage(name):
            summary = make()
        seconds = time.perf_counter() - started
        self.spent[name] = seconds
        self._note(name, {"inputs": inputs, "status": "done", "summary": summary, "seconds": round(seconds, 3)})
        for line in summary:
            logger.info(f"{name}: {line}")

    def leave(self, outputs: Mapping[str, Sequence[str]], of: str) -> None:
        """Remove stages of something else, given with their outputs; OutputError if ``overwrite`` is not set."""
        finished = [name for name in outputs if name in self.record["stages"]]
        if not self.overwrite and any((self.folder / output).exists() for name in finished for output in outputs[name]):
            raise OutputError(
                f"{self.folder} holds the stages {', '.join(finished)} of {of}. Pass `overwrite` to remove them, or "
                "choose another output folder."
            )
        for name in finished:
            # Before they are removed: a run that is killed here must not leave them as done.
            self._note(name, {**self.record["stages"][name], "status": "removed"})
        self._remove(output for name in finished for output in outputs[name])
        for name in finished:
            del self.record["stages"][name]

    def finish(self) -> None:
        """Note that all is done, and say what the time of this run was spent on."""
        self.record["status"] = "finished"
        manifest.write(self.folder, self.record)
        logger.info(time_summary(self.spent))

    def _replace(self, name: str, old: dict[str, Any], new: dict[str, Any], outputs: Iterable[str]) -> None:
        changes = [
            f"{key} was {_short_json(old.get(key))} and is {_short_json(new.get(key))}"
            for key in sorted(old.keys() | new.keys())
            if old.get(key) != new.get(key)
        ]
        if not self.overwrite and any((self.folder / output).exists() for output in outputs):
            raise OutputError(
                f"The stage {name} in {self.folder} was made with other inputs: {'; '.join(changes)}. Pass `overwrite` "
                "to make it again, or choose another output folder."
            )
        logger.info(f"{name}: made again, since {'; '.join(changes)}")
        self._note(name, {"inputs": old, "status": "removed"})  # killed here, it must not count as done
        self._remove(outputs)

    def _remove(self, outputs: Iterable[str]) -> None:
        for output in outputs:
            target = self.folder / output
            if target.is_dir():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)

    def _note(self, name: str, entry: dict[str, Any]) -> None:
        self.record["stages"][name] = entry
        manifest.write(self.folder, self.record)


def _short_json(value: Any) -> str:
    return shorten_text(json.dumps(value, ensure_ascii=False), 60)


def read_stages(folder: Path, method: str) -> dict[str, Any]:
    """Return the manifest of earlier stages in a folder, empty without any.

    OutputError if stages of a method could not be written there: it cannot be a folder, or it holds something else.
    """
    check_folder(folder)
    path = folder / manifest.FILE
    if folder.exists() and not is_empty(folder) and not path.is_file():
        raise OutputError(f"{folder} is not empty and holds no {method.title()}. Choose another output folder.")
    before = read_object(path, StagesRecord) if path.is_file() else {}
    if before and before.get("method") != method:
        raise OutputError(f"{folder} holds a run of {before.get('method')}. Choose another output folder.")
    return before
