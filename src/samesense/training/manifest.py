"""The manifest of a run: method, settings, data and versions, so that the run can be repeated and resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field

from samesense.errors import AnotherRunError, ConfigError
from samesense.execution.ranks import world_size
from samesense.execution.versions import changes, environment
from samesense.files import write_json
from samesense.schemas import Record, read_object

_IDENTITY = ("method", "settings", "data", "processes")
FILE = "manifest.json"


class RunRecord(Record):
    """The fields of a manifest that all methods share."""

    method: str = ""
    status: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    data: dict[str, Any] = Field(default_factory=dict)
    processes: int = 1
    stages: dict[str, dict[str, Any]] = Field(default_factory=dict)
    outcome: dict[str, Any] = Field(default_factory=dict)
    versions: dict[str, Any] = Field(default_factory=dict)
    precision: list[str] = Field(default_factory=list, min_length=2, max_length=2)


def describe(method: str, settings: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """Return a manifest of JSON types: method, settings, data with hashes, processes, versions, machine, start time."""
    made_of = {"method": method, "settings": settings, "data": data, "processes": world_size()}
    return {**made_of, **environment(), "status": "running"}


def write(folder: Path, manifest: dict[str, Any]) -> None:
    """Write ``manifest`` atomically into ``folder``."""
    write_json(folder / FILE, manifest)


def read(folder: Path) -> dict[str, Any]:
    """Return the manifest in ``folder``; ConfigError if there is none."""
    path = folder / FILE
    if not path.is_file():
        raise ConfigError(f"resume continues a run, and {folder} holds none (no {FILE}). Start it without resume.")
    return read_object(path, RunRecord)


def check_same_run(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Return the manifest of the run in ``folder``; AnotherRunError unless it has the same method and settings.

    The number of processes and the content of the data must be the same too, but not the sources of the data.
    """
    recorded = read(folder)
    differences = []
    for field in _IDENTITY:
        old = _flat(field, recorded.get(field))
        new = _flat(field, json.loads(json.dumps(manifest[field])))  # tuples become lists, as in the file
        differences += changes(old, new, ignored=[name for name in {**old, **new} if name.endswith(".source")])
    if differences:
        raise AnotherRunError(
            f"resume continues the run in {folder} as it was begun, but {'; '.join(differences)}. "
            "Give the same settings, data and number of processes, or another output folder."
        )
    return recorded


def _flat(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        return {name: value}
    flat: dict[str, Any] = {}
    for key, inner in value.items():
        flat.update(_flat(f"{name}.{key}", inner))
    return flat
