"""What a model costs: sentences a second measured here, numbers in its weights, and their size on disk."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import torch
from safetensors import safe_open

from samesense.data.sampling import spread_over
from samesense.encoder.names import base_of, local_folder, split_options
from samesense.errors import ModelError
from samesense.evaluation.run import Cost
from samesense.execution.speed import Speed, time_in_turns
from samesense.inference.models.model import Model
from samesense.inference.names import split_kind, split_maps
from samesense.inference.onnx.format import graph_name, is_exported, is_graph_backend, read_description
from samesense.recipes.compare.memory import reader_of
from samesense.types import Scorer

SAMPLE = 256
"""Sentences of a pass at most, spread over the evaluated ones."""

WARM_UP = 16
"""Sentences that are encoded first, which says how many a pass may have; the least of a pass."""

SECONDS = 0.3
"""Passes of a model go on for so long in each round; one that takes longer has fewer sentences."""

STORED = ("vectors", "origin")
"""Kinds whose vectors are looked up or remembered on disk, so that their speed would say nothing."""

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")


def measure_costs(models: Sequence[tuple[str, Scorer]], texts: Sequence[str]) -> list[Cost]:
    """Return what models cost, each given with what it was opened as; ``texts`` are those they are evaluated on.

    Their speeds are measured in turns, so that what else the machine does falls on all of them. Nothing that a model
    remembers is used or changed.
    """
    runs = [_run(spec, model, texts) for spec, model in models]
    timed = [run for run in runs if run is not None]
    measured, disturbed = time_in_turns(timed, seconds=SECONDS) if timed else ([], "")
    speeds = iter(measured)
    return [
        _cost(spec, model, None if run is None else next(speeds), disturbed)
        for (spec, model), run in zip(models, runs, strict=True)
    ]


def _cost(spec: str, model: Scorer, speed: Speed | None, disturbed: str) -> Cost:
    # A scorer of the user's own has neither a backend nor files to look at.
    if not isinstance(model, Model):
        return Cost(computed=_computed(model.protocol, "", function=True))
    base = split_maps(spec)[0]
    kind, location = split_kind(base)
    parameters = None
    size = None
    if model.home is not None:  # it was opened by a name
        if not kind:
            location = split_options(base).base
        parameters, size = _weights(kind, location, model.backend)
    computed = _computed(model.protocol, model.backend, function=bool(kind))
    return Cost(
        computed=computed,
        speed=speed,
        disturbed="" if speed is None else disturbed,
        parameters=parameters,
        megabytes=size,
    )


def _run(spec: str, model: Scorer, texts: Sequence[str]) -> Callable[[], int] | None:
    """Return what reads some sentences once, warmed up; ``None`` if none can be, or what is read is looked up."""
    if not isinstance(model, Model) or split_kind(split_maps(spec)[0])[0] in STORED or not texts:
        return None
    read = reader_of(model)
    try:
        few = [texts[row] for row in spread_over(len(texts), WARM_UP)]
        seconds = _timed(read, few)
        count = min(SAMPLE, max(WARM_UP, int(len(few) * SECONDS / seconds)))
        sample = [texts[row] for row in spread_over(len(texts), count)]
        if len(sample) > len(few):
            read(sample)
    except ModelError:
        return None

    def run() -> int:
        read(sample)
        return len(sample)

    return run


def _timed(run: Callable[[Sequence[str]], object], texts: Sequence[str]) -> float:
    started = time.perf_counter()
    run(texts)
    # A coarse clock may show no time at all, and speeds are divided by it.
    return max(time.perf_counter() - started, 1e-9)


def _computed(protocol: str, backend: str, *, function: bool) -> str:
    """Return arithmetic and processor; what has no backend says its arithmetic in its protocol, if it has one."""
    description = f"{backend} {protocol}"
    arithmetic = next((f"in {name}" for name in ("int8", "bfloat16", "float32") if name in description), "")
    threads = torch.get_num_threads()
    where = f"on {threads} threads"
    if threads == 1:
        where = "on 1 thread"
    if torch.cuda.is_available() and not function and not is_graph_backend(backend):
        where = f"on {torch.cuda.get_device_name()}"  # where sentence-transformers puts a model
    return f"{arithmetic} {where}".strip()


def _weights(kind: str, name: str, backend: str) -> tuple[int | None, float | None]:
    """Return parameters and megabytes of what a name names, as far as its files say."""
    if kind in ("python", "python-score", "origin"):
        return None, None
    if kind:
        path = Path(name.partition("?")[0]).expanduser()
        return None, _megabytes([path] if path.is_file() else path.glob("*"))
    if is_graph_backend(backend) and is_exported(name):
        graph = read_description(name).graphs[graph_name(backend)]
        return _parameters(Path(name).expanduser()), graph.bytes / 1e6
    folder = local_folder(name)
    if folder is None:
        return None, None
    base = base_of(folder)
    if base is not None:  # adapters, which are merged once they are opened
        parameters, size = _weights("", base, backend)
        # A size that is not known stays unknown.
        return parameters, size and size + (_stored(folder) or 0)
    return _parameters(folder), _stored(folder)


def _stored(folder: Path) -> float | None:
    """Return the size of the weights in a folder."""
    # By one pattern alone: a folder that has both formats holds the weights twice.
    return next(filter(None, (_megabytes(folder.rglob(pattern)) for pattern in WEIGHTS)), None)


def _parameters(folder: Path) -> int | None:
    """Return the numbers in the safetensors files of a folder, from their headers; ``None`` if there are none."""
    total = 0
    for path in folder.rglob("*.safetensors"):
        with safe_open(path, framework="np") as weights:
            total += sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.keys())  # noqa: SIM118
    return total or None


def _megabytes(paths: Iterable[Path]) -> float | None:
    """Return the size of files in 10^6 bytes; ``None`` if there is none."""
    return sum(path.stat().st_size for path in paths if path.is_file()) / 1e6 or None
