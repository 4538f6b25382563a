"""Smaller forms of a race's winner: weights of eight bits, fewer layers, and token vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from samesense.choices import BackendOption
from samesense.data.sentences import Sentences
from samesense.encoder.assembly.build import build
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.inference.onnx.export import RangeTexts, export
from samesense.inference.onnx.format import GraphName, read_description
from samesense.recipes.distil.recipe import build_student, prepare
from samesense.recipes.distil.settings import choose_distil
from samesense.recipes.race.clock import FEW_STEPS, Clock
from samesense.recipes.race.starts import measured, speed
from samesense.recipes.run.job import Job
from samesense.recipes.run.run_folder import run_or_resume
from samesense.recipes.run.runner import run as run_job
from samesense.training import manifest

BATCH = 64
"""Sentences of a step of distillation."""

EXPORT_SECONDS = 30.0
"""Seconds left below which no export is begun: one of a model of six layers takes about as long."""

OPENVINO_SECONDS = 60.0
"""Seconds left below which an export has no graph for OpenVINO, whose quantization takes about as long again."""

INT8_BACKENDS: tuple[GraphName, ...] = ("openvino-int8", "onnx-int8")
"""Backends of eight bits, of which the fastest is taken."""

PASSES = 10
"""Most times that a student sees a text."""

WIDTH = 256
"""Of static vectors, at most: see :mod:`samesense.recipes.distil`."""

LEAST_TEXTS = 4 * BATCH
"""Sentences below which a student learns nothing."""


@dataclass(frozen=True, kw_only=True)
class Winner:
    """What smaller forms are made of: the best model, where it lies, its speed and depth, and texts like its data."""

    place: str
    name: str
    speed: float
    depth: int
    width: int
    texts: list[str]
    sample: list[str]
    seed: int


@dataclass(frozen=True, kw_only=True)
class Form:
    """A smaller form: the model, opened, what is measured of it, and the backend that computes it."""

    form: str
    name: str
    model: Model
    speed: float
    megabytes: float
    steps: int
    place: str
    backend: BackendOption = "auto"


Make = Callable[[Winner, Path, Clock], Form | str | None]
"""Makes a form in a folder; returns why not, in words, or None if it was interrupted; may raise SamesenseError."""


def shape_of(location: str) -> tuple[int, int]:
    """Return the layers of a model, 0 for a static one, and the width of its vectors."""
    model = build(location)
    config = getattr(getattr(model[0], "model", None), "config", None)
    return int(getattr(config, "num_hidden_layers", 0)), int(model.get_embedding_dimension() or 0)


def int8(winner: Winner, folder: Path, clock: Clock) -> Form | str | None:
    """Export the winner with weights of eight bits; of OpenVINO and onnxruntime the faster one computes it."""
    # An earlier call may have exported it.
    if not (folder / "modules.json").is_file():
        if clock.for_forms < EXPORT_SECONDS:
            return "int8: no time was left"
        range_texts = None
        if clock.for_forms >= OPENVINO_SECONDS and all(map(find_spec, ("openvino", "nncf"))):
            range_texts = RangeTexts.spread(winner.texts, "the training data")
        openvino_int8 = range_texts is not None
        export(winner.place, folder, int8=True, openvino_int8=openvino_int8, range_texts=range_texts, weights=False)
    graphs = read_description(folder).graphs
    models = {backend: load(folder, backend=backend) for backend in INT8_BACKENDS if backend in graphs}
    speeds = {backend: speed(model.encode_uncached, winner.sample) for backend, model in models.items()}
    backend = max(speeds, key=lambda name: speeds[name])
    return Form(
        form="int8",
        name=f"{winner.name}, int8",
        model=models[backend],
        speed=speeds[backend],
        megabytes=graphs[backend].bytes / 1e6,
        steps=0,
        place=str(folder),
        backend=backend,
    )


def static(winner: Winner, folder: Path, clock: Clock) -> Form | str | None:
    """Distil the winner into vectors of its tokens."""
    # The other half of the time is for the form that comes after it.
    return _distilled(f"static:{min(WIDTH, winner.width)}", winner, folder, clock.for_forms / 2, step=0.1)


def layers(winner: Winner, folder: Path, clock: Clock) -> Form | str | None:
    """Distil the winner into half of its layers."""
    if winner.depth < 2:
        return "layers: the winner has one layer only"
    # Half of the layers read twice as fast, and a step takes about four forward passes.
    step = 4 * BATCH / (2 * winner.speed)
    return _distilled(f"layers:{winner.depth // 2}", winner, folder, clock.for_forms, step=step)


FORMS: dict[str, Make] = {"int8": int8, "static": static, "layers": layers}


def _distilled(student: str, winner: Winner, folder: Path, seconds: float, *, step: float) -> Form | str | None:
    form = student.partition(":")[0]
    # At most 0.3 of the time for the teacher to read, and 0.45 for the steps.
    count = min(len(winner.texts), int(0.3 * seconds * winner.speed))
    steps = min(int(0.45 * seconds / step), PASSES * count // BATCH)
    if (folder / manifest.FILE).is_file():  # begun by an earlier call, which had other time left
        begun = manifest.read(folder)
        count = begun["data"]["train"]["rows"]
        steps = begun["settings"]["max_steps"]
    if count < LEAST_TEXTS or steps < FEW_STEPS:
        return f"{form}: no time was left, or there are too few texts"
    texts = [winner.texts[index * len(winner.texts) // count] for index in range(count)]
    overrides = {
        "model": student,
        "teacher": (winner.place,),
        "batch_size": BATCH,
        "max_steps": steps,
        "eval_steps": steps,
        "seed": winner.seed,
    }
    _, settings = choose_distil("auto", overrides)
    job = Job(
        method="distil",
        data=Sentences(texts=texts, source="the training data", name="training data"),
        settings=settings,
        output=folder,
    )
    if not run_or_resume(folder, partial(run_job, job, prepare, build=build_student)):
        return None
    location = str(folder / "model")
    start = measured(student, location, build(location), winner.sample)
    return Form(
        form=form,
        name=f"{winner.name}, distilled into {student}",
        model=load(location, precision="float32"),
        speed=start.speed,
        megabytes=start.megabytes,
        steps=steps,
        place=location,
    )
