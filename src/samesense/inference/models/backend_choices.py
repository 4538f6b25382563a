"""Which backend was the fastest for a model on this machine, kept between runs."""

from __future__ import annotations

import contextlib
import os
import platform
from pathlib import Path

from samesense.errors import DataError, OutputError
from samesense.execution.threads import cores
from samesense.execution.versions import installed_versions
from samesense.files import json_hash, read_json, write_json

FOLDER_VARIABLE = "SAMESENSE_CACHE"
"""Environment variable that names another folder than ``samesense`` in the user's cache."""


def choice_key(source: str, ways: list[str]) -> str:
    """Return what a choice depends on: the model's files, what was to choose from, the processor, the libraries."""
    known = installed_versions(("torch", "onnxruntime"))
    facts = {
        "model": _files(Path(source).expanduser()) or source,
        "ways": sorted(ways),
        "machine": [platform.machine(), _processor(), cores(), os.environ.get("OMP_NUM_THREADS")],
        "libraries": [known.get(package) for package in ("torch", "onnxruntime")],
    }
    return json_hash(facts)


def recall(key: str) -> str | None:
    """Return the backend chosen before, if there was one."""
    try:
        return str(read_json(_place(key))["way"])
    except (DataError, KeyError):
        return None  # measured again


def cache_embeddings(key: str, way: str, speeds: dict[str, float]) -> None:
    """Keep a choice and the texts a second behind it; where nothing can be written, it is measured again next time."""
    with contextlib.suppress(OutputError):
        write_json(_place(key), {"way": way, "texts_a_second": speeds})


def _place(key: str) -> Path:
    base = os.environ.get(FOLDER_VARIABLE)
    if base is None:
        base = str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "samesense")
    return Path(base) / "backends" / f"{key}.json"


def _files(folder: Path) -> list[tuple[str, int, int]]:
    """Return name, size and time of change of every file of a model; empty for what is no folder."""
    found = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    return [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in found]


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
