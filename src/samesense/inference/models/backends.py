"""Choose the fastest backend for a model on this machine by measuring; accuracy is only given up on request."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from samesense.choices import BackendOption
from samesense.data.sampling import spread_over
from samesense.errors import ConfigError, DataError, OutputError
from samesense.execution.threads import cores
from samesense.execution.versions import installed_versions
from samesense.files import read_json, write_json
from samesense.hashes import json_hash
from samesense.inference.onnx.format import Description, is_graph_backend
from samesense.types import Encode, Precision

Backend = Literal[
    "torch-float32",
    "torch-bfloat16",
    "numpy",
    "onnx",
    "onnx-int8",
    "openvino",
    "openvino-bfloat16",
    "openvino-int8",
]
"""Backends that compute."""

EXACT: tuple[Backend, ...] = ("onnx", "openvino", "torch-float32")
"""Backends that compute in float32."""

MOST_DRIFT = 0.1
"""Largest change of Spearman (times 100) at which ``"auto"`` may choose an inexact backend."""

LEAST_PAIRS = 500
"""Least number of pairs behind a recorded drift; the drift on fewer pairs is mostly chance."""

MEASURE_FROM = 5000
"""Number of distinct texts from which measuring pays: it opens every backend and encodes a sample a few times."""

SAMPLE = 256
"""Number of texts that are encoded to measure a backend."""

ROUNDS = 3
"""Number of measurements of each backend; the best counts."""

FOLDER_VARIABLE = "SAMESENSE_CACHE"
"""Environment variable for the cache folder; the default is ``samesense`` in the user's cache."""

WORTH = 1.1
"""Speed-up over the best exact backend from which an inexact one is chosen."""


@dataclass(frozen=True)
class Choice:
    """A backend, and the reason for choosing it."""

    backend: Backend
    reason: str


def check_backend(backend: BackendOption, precision: Precision) -> None:
    """Raise ConfigError if backend and precision contradict each other."""
    if backend in ("onnx-int8", "openvino-int8") and precision != "auto":
        raise ConfigError(f"The backend {backend} computes in eight bits; received precision {precision} too.")
    if backend in ("onnx", "openvino") and precision == "bfloat16":
        raise ConfigError(
            f"The backend {backend} computes in float32; for bfloat16 take the backend torch or openvino-bfloat16."
        )
    if backend == "openvino-bfloat16" and precision == "float32":
        raise ConfigError("The backend openvino-bfloat16 computes in bfloat16; for float32 take the backend openvino.")


def exported_backends(
    description: Description,
    backend: BackendOption,
    precision: Precision,
    *,
    torch_there: bool,
    bfloat16_there: bool,
    openvino_there: bool = False,
    openvino_bfloat16_there: bool = False,
) -> list[Backend]:
    """Return the backends of an exported folder that satisfy a request, the default first.

    ``torch_there`` says that torch is installed and the folder holds its weights, ``openvino_there`` that OpenVINO is
    installed, and ``openvino_bfloat16_there`` that it computes in bfloat16 on this processor.
    """
    check_backend(backend, precision)
    if is_graph_backend(backend):
        return [backend]
    if precision == "bfloat16":
        return ["torch-bfloat16"]
    if backend == "torch":
        if precision == "float32":
            return ["torch-float32"]
        if bfloat16_there:
            return ["torch-bfloat16"]
        return ["torch-float32"]
    backends: list[Backend] = ["onnx"]
    if openvino_there:
        backends.append("openvino")
    if torch_there:
        backends.append("torch-float32")
    if precision == "auto":
        inexact: dict[Backend, bool] = {
            "onnx-int8": "onnx-int8" in description.graphs,
            "openvino-int8": openvino_there and "openvino-int8" in description.graphs,
            "torch-bfloat16": torch_there and bfloat16_there,
            "openvino-bfloat16": openvino_bfloat16_there,
        }
        backends += [name for name, there in inexact.items() if there and keeps_spearman(description, name)]
    return backends


def keeps_spearman(description: Description, backend: Backend) -> bool:
    """Return whether the export measured, on enough pairs, a drift of this backend of at most MOST_DRIFT."""
    drift = description.drift
    if drift is None or drift.pairs < LEAST_PAIRS or backend not in drift.points:
        return False
    return abs(drift.points[backend]) <= MOST_DRIFT


def choose(source: str, openers: Mapping[Backend, Callable[[], Encode]], texts: Sequence[str] | None) -> Choice:
    """Return the fastest of several backends for this model, machine and kind of text.

    A measured choice is cached for the model's files. Without ``texts`` the first of ``openers`` is chosen, so that the
    result does not depend on earlier runs; also for few texts without a cached choice.
    """
    backends = list(openers)
    if len(backends) == 1:
        return Choice(backends[0], "the only one that fits")
    if texts is None:
        return Choice(backends[0], "by default")
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
    """Return texts a second of each backend on a sample of ``texts``: the best of some rounds, backends in turn."""
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
    """Return a hash of what a choice depends on: the model's files, the backends, the processor and the libraries."""
    packages = ("torch", "onnxruntime", "openvino")
    versions = installed_versions(packages)
    facts = {
        "model": _files(Path(source).expanduser()) or source,
        "backends": sorted(backends),
        # The variable limits the threads of every backend, and so is a part of the machine.
        "machine": [platform.machine(), _processor(), cores(), os.environ.get("OMP_NUM_THREADS")],
        "libraries": [versions.get(package) for package in packages],
    }
    return json_hash(facts)


def recall(key: str) -> str | None:
    """Return the cached choice of a backend, if there is one."""
    try:
        return str(read_json(_cache_file(key))["backend"])
    except (DataError, KeyError):
        return None  # the backends are measured again


def store_choice(key: str, backend: str, speeds: dict[str, float]) -> None:
    """Cache a choice with its measurements; if the file cannot be written, they are made again next time."""
    with contextlib.suppress(OutputError):
        write_json(_cache_file(key), {"backend": backend, "texts_a_second": speeds})


def _cache_file(key: str) -> Path:
    base = os.environ.get(FOLDER_VARIABLE)
    if base is None:
        base = str(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "samesense")
    return Path(base) / "backends" / f"{key}.json"


def _files(folder: Path) -> list[tuple[str, int, int]]:
    """Return name, size and modification time of every file of a model; empty if it is not in a folder."""
    if not folder.is_dir():
        return []
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    # Size and time, as a hash would read gigabytes.
    return [(str(path.relative_to(folder)), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]


def _processor() -> str:
    # Under Linux platform.processor() says little or nothing.
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor()
