"""From the name of a model to the model: which of its forms is opened, and what computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from samesense.errors import ConfigError, ModelError
from samesense.inference.models.backends import Backend, Way, check_asked, choose, exported_ways
from samesense.inference.models.model import Model
from samesense.inference.models.optional_deps import has_torch, needs_torch
from samesense.inference.onnx.encoder import OnnxEncoder
from samesense.inference.onnx.format import is_exported, read_description
from samesense.types import Encode, Precision

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def load(
    name: str = "default",
    *,
    backend: Backend = "auto",
    precision: Precision = "auto",
    device: str | None = None,
    deterministic: bool = False,
    sample: Sequence[str] | None = None,
    calibration: Path | None = None,
    threads: int | None = None,
) -> Model:
    """Open a model: a folder, the output of ``samesense train`` or ``export``, a hub name, or ``"default"``.

    Args:
        name: the model.
        backend: what computes. ``"auto"`` takes what is the fastest by an earlier measurement, or by one now if
            ``sample`` is large; without a sample, onnx for an exported folder and torch for others.
        precision: arithmetic of torch; ``"auto"`` is bfloat16 where the processor computes in it.
        device: torch device; ``None`` lets sentence-transformers choose.
        deterministic: bits of a vector depend on its text alone, not on the texts beside it; slower, and nothing is
            chosen by measuring.
        sample: the texts to be encoded, for the choice.
        calibration: file made by ``samesense calibrate``; ``None`` for the one in the model's folder, read when it is
            asked for.
        threads: that compute; ``None`` takes ``OMP_NUM_THREADS`` if set, else those the process may use.

    Raises:
        ModelError: if there is no such model, or it was not exported for the backend.
        ConfigError: if backend, precision or device contradict each other.
        MissingExtraError: if torch is needed and not installed, or the default's package is not.
    """
    model = _opened(name, _Asked(backend, precision, device, deterministic, None if deterministic else sample, threads))
    model.home = (name, calibration)
    return model


@dataclass(frozen=True)
class _Asked:
    """How a model shall compute; see :func:`load`."""

    backend: Backend
    precision: Precision
    device: str | None
    deterministic: bool
    sample: Sequence[str] | None
    threads: int | None


def _opened(name: str, asked: _Asked) -> Model:
    if is_exported(name):
        return _exported(name, asked)
    check_asked(asked.backend, asked.precision)
    if asked.backend in ("onnx", "onnx-int8"):
        raise ModelError(
            f"The backend {asked.backend} opens exported folders only; {name} is none. Make one: "
            f"samesense export {name} --output FOLDER{' --int8' if asked.backend == 'onnx-int8' else ''}"
        )
    with needs_torch():
        return _by_torch(name, asked)


def _by_torch(name: str, asked: _Asked) -> Model:
    from samesense.encoder import build as encoders
    from samesense.encoder.cross import is_cross_encoder, open_cross_encoder
    from samesense.encoder.precision import has_bfloat16

    source = encoders.resolve(name)
    if is_cross_encoder(source):
        score, _ = open_cross_encoder(source, precision=asked.precision, device=asked.device)
        return Model(None, score=score, precision=asked.precision)
    encoder = encoders.build(name, device=asked.device)
    if (
        asked.precision != "auto"
        or asked.sample is None
        or encoder.device.type != "cpu"
        or not has_bfloat16(encoder.device)
    ):
        return Model(encoder, precision=asked.precision, deterministic=asked.deterministic, threads=asked.threads)
    ways: tuple[Way, ...] = ("torch-bfloat16", "torch-float32")
    models = {way: Model(encoder, precision=_precision(way), threads=asked.threads) for way in ways}
    choice = choose(source, {way: _opener(model) for way, model in models.items()}, asked.sample)
    model = models[choice.way]
    model.choice = choice
    return model


def _exported(name: str, asked: _Asked) -> Model:
    if asked.device not in (None, "cpu") and asked.backend != "torch":
        raise ConfigError(
            f"An exported model runs on the CPU; received device {asked.device}. Take the backend torch for it."
        )
    torch_there = has_torch() and any(Path(name).expanduser().rglob("*.safetensors"))
    torch_asked = asked.backend == "torch" or asked.precision == "bfloat16"
    if torch_asked and not torch_there:
        _why_not_torch(name)
    bfloat16_there = torch_there and (torch_asked or asked.sample is not None) and _computes_in_bfloat16()
    ways = exported_ways(
        read_description(name), asked.backend, asked.precision, torch_there=torch_there, bfloat16_there=bfloat16_there
    )

    @cache
    def opened(way: Way) -> Model:
        if way in ("onnx", "onnx-int8"):
            return Model(OnnxEncoder(name, way, deterministic=asked.deterministic, threads=asked.threads))
        encoder = _torch_encoder(name, asked.device)
        return Model(encoder, precision=_precision(way), deterministic=asked.deterministic, threads=asked.threads)

    def opener(way: Way) -> Callable[[], Encode]:
        return lambda: opened(way).encode

    choice = choose(name, {way: opener(way) for way in ways}, asked.sample)
    model = opened(choice.way)
    model.choice = choice
    return model


@cache
def _computes_in_bfloat16() -> bool:
    import torch

    from samesense.encoder.precision import has_bfloat16

    return has_bfloat16(torch.device("cpu"))


def _torch_encoder(name: str, device: str | None) -> SentenceTransformer:
    from samesense.encoder.build import build

    return build(name, device=device)


def _why_not_torch(name: str) -> None:
    with needs_torch():
        import sentence_transformers  # noqa: F401  # absent: says what to install
    raise ModelError(
        f"{name} was exported without torch's weights. Take the backend onnx, or export it again with them."
    )


def _precision(way: Way) -> Precision:
    return "bfloat16" if way == "torch-bfloat16" else "float32"


def _opener(model: Model) -> Callable[[], Encode]:
    return lambda: model.encode
