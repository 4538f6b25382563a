"""The fastest backend for a model on this machine, found by measuring, and never by giving up accuracy unasked."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from samesense.data.examples import spread_over
from samesense.errors import ConfigError, DataError, OutputError
from samesense.execution.threads import cores
from samesense.execution.versions import installed_versions
from samesense.files import read_json, write_json
from samesense.hashes import json_hash
from samesense.inference.onnx.format import Description
from samesense.types import Encode, Precision

BackendOption = Literal["auto", "torch", "onnx", "onnx-int8"]
"""What a user may ask for."""

Backend = Literal["torch-float32", "torch-bfloat16", "numpy", "onnx", "onnx-int8"]
"""What computes in the end."""

EXACT: tuple[Backend, ...] = ("onnx", "torch-float32")

MOST_DRIFT = 0.1
"""Points of Spearman (times 100) that a backend may stray and still be chosen unasked."""

LEAST_PAIRS = 500
"""Pairs a recorded drift must rest on; that of fewer is mostly chance."""

MEASURE_FROM = 5000
"""Distinct texts from which measuring pays: it opens every backend and encodes a sample a few times."""

SAMPLE = 256
ROUNDS = 3

FOLDER_VARIABLE = "SAMESENSE_CACHE"
"""Environment variable that names another folder than ``samesense`` in the user's cache."""

WORTH = 1.1
"""How many times faster than the best exact backend an inexact one must be."""


@dataclass(frozen=True)
class Choice:
    """A backend, and why it was taken."""

    backend: Backend
    reason: str


def check_backend(backend: BackendOption, precision: Precision) -> None:
    """Raise ConfigError if backend and precision contradict each other."""
    if backend == "onnx-int8" and precision != "auto":
        raise ConfigError(f"The backend onnx-int8 computes in eight bits; received precision {precision} too.")
    if backend == "onnx" and precision == "bfloat16":
        raise ConfigError("The backend onnx computes in float32; for bfloat16 take the backend torch.")


def exported_backends(
    description: Description, backend: BackendOption, precision: Precision, *, torch_there: bool, bfloat16_there: bool
) -> list[Backend]:
    """Return the backends that an exported folder offers for what is asked, the one taken unmeasured first.

    ``torch_there``: torch is installed and the folder holds its weights.
    """
    check_backend(backend, precision)
    if backend in ("onnx", "onnx-int8"):
        return ["onnx" if backend == "onnx" else "onnx-int8"]
    if precision == "bfloat16":
        return ["torch-bfloat16"]
    if backend == "torch":
        if precision == "float32":
            return ["torch-float32"]
        return ["torch-bfloat16"] if bfloat16_there else ["torch-float32"]
    found: list[Backend] = ["onnx"]
    if torch_there:
        found.append("torch-float32")
    if precision == "auto":
        if "onnx-int8" in description.graphs and keeps_spearman(description, "onnx-int8"):
            found.append("onnx-int8")
        if torch_there and bfloat16_there and keeps_spearman(description, "torch-bfloat16"):
            found.append("torch-bfloat16")
    return found


def keeps_spearman(description: Description, backend: Backend) -> bool:
    """Return whether the export recorded, on enough pairs, that this backend strays by no more than MOST_DRIFT."""
    drift = description.drift
    if drift is None or drift.pairs < LEAST_PAIRS or backend not in drift.points:
        return False
    return abs(drift.points[backend]) <= MOST_DRIFT


def choose(source: str, openers: Mapping[Backend, Callable[[], Encode]], texts: Sequence[str] | None) -> Choice:
    """Return the fastest of several backends for this model, machine and kind of text.

    A choice is remembered for the model's files. The first of ``openers`` is taken where nothing is known or measured,
    and without ``texts``, so that nothing depends on earlier runs.
    """
    backends = list(openers)
    if texts is None or len(backends) == 1:
        return Choice(backends[0], "the only one that fits" if len(backends) == 1 else "by default")
    key = choice_key(source, [*backends])
    remembered = recall(key)
    for backend in backends:
        if backend == remembered:
            return Choice(backend, "measured on this machine before")
    distinct = list(dict.fromkeys(texts))
    if len(distinct) < MEASURE_FROM:
        return Choice(backends[0], f"too few texts to measure: {len(distinct)} of {MEASURE_FROM}")
    speeds = measure({backend: opener() for backend, opener in openers.items()}, distinct)
    backend = fastest(speeds)
    figures = ", ".join(f"{name} {speed:.0f}" for name, speed in speeds.items())
    store_choice(key, backend, {name: round(speed, 1) for name, speed in speeds.items()})
    return Choice(backend, f"measured, texts a second: {figures}")


def measure(encoders: Mapping[Backend, Encode], texts: Sequence[str]) -> dict[Backend, float]:
    """Return texts a second of each backend over a sample spread over ``texts``: best of some rounds, in turns."""
    sample = [texts[index] for index in spread_over(len(texts), SAMPLE)]
    best = dict.fromkeys(encoders, float("inf"))
    for attempt in range(ROUNDS + 1):
        for backend, encode in encoders.items():
            started = time.perf_counter()
            encode(sample)
            if attempt:  # the first round warms up
                best[backend] = min(best[backend], time.perf_counter() - started)
    return {backend: len(sample) / seconds for backend, seconds in best.items()}


def fastest(speeds: Mapping[Backend, float]) -> Backend:
    """Return the fastest exact backend, or an inexact one that is WORTH it."""
    return max(speeds, key=lambda backend: speeds[backend] * (1.0 if backend in EXACT else 1 / WORTH))


def choice_key(source: str, backends: list[str]) -> str:
    """Return what a choice depends on: the model's files, what was to choose from, the processor, the libraries."""
    versions = installed_versions(("torch", "onnxruntime"))
    facts = {
        "model": _files(Path(source).expanduser()) or source,
        "backends": sorted(backends),
        "machine": [platform.machine(), _processor(), cores(), os.environ.get("OMP_NUM_THREADS")],
        "libraries": [versions.get(package) for package in ("torch", "onnxruntime")],
    }
    return json_hash(facts)


def recall(key: str) -> str | None:
    """Return the backend chosen before, if there was one."""
    try:
        return str(read_json(_place(key))["backend"])
    except (DataError, KeyError):
        return None  # measured again


def store_choice(key: str, backend: str, speeds: dict[str, float]) -> None:
    """Keep a choice and the texts a second behind it; where nothing can be written, it is measured again next time."""
    with contextlib.suppress(OutputError):
        write_json(_place(key), {"backend": backend, "texts_a_second": speeds})


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
