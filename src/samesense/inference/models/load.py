"""From a name, or an object in memory, to a model: which of its forms is opened, and what computes it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cache as once
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from samesense.choices import check_choice
from samesense.encoder.names import resolve
from samesense.errors import ConfigError, ModelError
from samesense.execution.progress import stage
from samesense.hub import check_model
from samesense.inference.models.backends import (
    Backend,
    BackendOption,
    Choice,
    check_backend,
    choose,
    exported_backends,
)
from samesense.inference.models.functions import FunctionEncoder, open_kind
from samesense.inference.models.maps import apply_maps
from samesense.inference.models.model import Model
from samesense.inference.models.optional_deps import has_torch, needs_torch
from samesense.inference.names import parse_maps, split_kind, split_maps, split_pooling
from samesense.inference.onnx.encoder import OnnxEncoder
from samesense.inference.onnx.format import is_exported, read_description
from samesense.types import Encode, PoolingName, Precision

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

logger = logging.getLogger(__name__)

MOST_WORK = 50_000_000_000
"""Products of two numbers up to which NumPy is done before torch is imported: three seconds on two slow cores."""

MOST_LETTERS = 20_000_000
"""Characters beyond which no model is opened by NumPy, however little it does with each."""


def load(  # noqa: PLR0913 - what may be told of any kind of model
    model: str | Path | Model | SentenceTransformer | CrossEncoder | Encode = "default",
    *,
    name: str | None = None,
    backend: BackendOption = "auto",
    precision: Precision = "auto",
    device: str | None = None,
    pooling: PoolingName | None = None,
    deterministic: bool = False,
    sample: Sequence[str] | None = None,
    texts: Sequence[str] | None = None,
    fit_texts: Sequence[str] | None = None,
    cache: bool | Path = False,
    seed: int | None = None,
    calibration: Path | None = None,
    threads: int | None = None,
    dim: int | None = None,
    prompt: str | None = None,
) -> Model:
    """Open a model: anything that scores pairs of texts.

    Args:
        model: a folder, the output of ``samesense train`` or ``export``, a hub name, ``"default"``, or another name of
            the table in :mod:`samesense.inference.names`. Or what is in memory: a SentenceTransformer, a
            CrossEncoder, a function from texts to vectors, or a :class:`Model`; device, backend and pooling stay
            theirs.
        name: what results call it; ``None`` for the name it was opened by.
        backend: what computes. ``"auto"`` takes what is the fastest by an earlier measurement, or by one now if
            ``sample`` is large; without a sample, onnx for an exported folder and torch for others.
        precision: arithmetic of torch; ``"auto"`` is bfloat16 where the processor computes in it, and ``"float32"``
            keeps figures comparable between machines. An Origin keeps that in which it was made.
        device: torch device; ``None`` lets sentence-transformers choose.
        pooling: of a model, instead of its own; the same as ``NAME?pooling``.
        deterministic: bits of a vector depend on its text alone, not on the texts beside it; slower, and nothing is
            chosen by measuring.
        sample: the texts to be encoded, for the choice.
        texts: all texts that the model is opened for, where they are known, or ``sample``. Few of them are computed by
            NumPy in float32, to the same six digits, where the model is an encoder in a folder that it can read:
            nobody waits for torch to be imported.
        fit_texts: unlabelled texts on which ``+whiten`` and ``+flow`` are fitted, each counting as often as it comes.
        cache: encode each distinct text once, and score each distinct pair of a cross-encoder once. A folder keeps the
            embeddings of models between runs; other kinds are quick to read, or may change.
        seed: of the training run behind it, where known; a flow is fitted with it, or with 0.
        calibration: file made by ``samesense calibrate``; ``None`` for the one in the model's folder, read when it is
            asked for.
        threads: that compute; ``None`` takes ``OMP_NUM_THREADS`` if set, else those the process may use.
        dim: keep the first so many numbers of each vector, at unit length; the same as ``NAME+dim:64``.
        prompt: read before every text in the place of the model's default: one of its prompts by name, or a text. Of a
            model that torch computes, opened by its name.

    Raises:
        ModelError: if there is no such model, or it was not exported for the backend.
        ConfigError: if the name is malformed, the options contradict each other, or a map has no texts to fit on.
        MissingExtraError: if torch is needed and not installed, or the default's package is not.
    """
    check_choice("backend", backend, BackendOption)
    check_choice("precision", precision, Precision)
    narrow = "" if dim is None else f"+dim:{dim}"
    if isinstance(model, Model):
        if prompt is not None or calibration is not None:
            option = "prompt" if prompt is not None else "calibration"
            raise ConfigError(f"An opened model keeps prompt and calibration; received `{option}`. Open it with them.")
        if deterministic or backend != "auto":
            option = "deterministic" if deterministic else "backend"
            raise ConfigError(f"An opened model computes as it was opened; received `{option}`. Open it with that.")
        loaded = apply_maps(model, narrow, None)
        if name is not None or seed is not None:
            loaded = copy(loaded)
            loaded.name = name or loaded.name
            loaded.seed = loaded.seed if seed is None else seed
        return loaded
    base, maps = split_maps(f"{model}{narrow}") if isinstance(model, str | Path) else ("", narrow)
    options = _Options(
        backend=backend,
        precision=precision,
        device=device,
        pooling=pooling,
        deterministic=deterministic,
        sample=None if deterministic else sample,
        texts=None if deterministic else (sample if texts is None else texts),
        threads=threads,
        cache=bool(cache),
        prompt=prompt,
        whitened=any(name == "whiten" for name, _ in parse_maps(maps)),
    )
    if not isinstance(model, str | Path):
        loaded = _from_memory(model, options)
        if cache:
            loaded.remember(None if cache is True else Path(cache))
        loaded.name = name or loaded.name
        loaded.seed = seed
        return apply_maps(loaded, maps, None)
    with stage(f"loading {base}"):
        loaded = _open(base, options)
    if cache:
        loaded.remember(None if cache is True or split_kind(base)[0] else Path(cache))
    loaded = apply_maps(loaded, maps, fit_texts, seed=seed or 0, cache=bool(cache))
    loaded.name = name or f"{model}{narrow}"
    loaded.seed = seed
    if calibration is not None or (prompt is None and pooling is None):  # that in its folder is of its own scores
        loaded.home = f"{model}{narrow}", calibration
    return loaded


@dataclass(frozen=True, kw_only=True)
class _Options:
    """How a model shall compute; see :func:`load`."""

    backend: BackendOption
    precision: Precision
    device: str | None
    pooling: PoolingName | None
    deterministic: bool
    sample: Sequence[str] | None
    texts: Sequence[str] | None
    threads: int | None
    cache: bool
    prompt: str | None
    whitened: bool


def _from_memory(model: Any, options: _Options) -> Model:
    if options.prompt is not None:
        raise ConfigError("A model in memory keeps its prompt; received `prompt`. Set its default_prompt_name.")
    library = sys.modules.get("sentence_transformers")  # not imported: then no object of its classes can be here
    if library is not None and isinstance(model, library.SentenceTransformer):
        return _torch(model, options)
    if library is not None and isinstance(model, library.CrossEncoder):
        return _cross_encoder(model, options)
    if not callable(model):
        raise ConfigError(
            "A model is a name, a SentenceTransformer, a CrossEncoder, or a function from texts to vectors; received "
            f"{type(model).__name__}."
        )
    name = getattr(model, "__qualname__", type(model).__name__)
    return Model(FunctionEncoder(model, f"cosine, embeddings by {name}"), name=name)


def _open(base: str, options: _Options) -> Model:
    kind, source = split_kind(base)
    if kind:
        if options.backend != "auto" or options.pooling is not None or options.prompt is not None:
            raise ConfigError(f"Backend, pooling and prompt are chosen for models; {base} has none. Leave them out.")
        return open_kind(
            kind, source, device=options.device, precision=options.precision, deterministic=options.deterministic
        )
    name, pooling = split_pooling(base)
    pooling = options.pooling or pooling
    if is_exported(name) and pooling is None and options.prompt is None:
        return _exported(name, options)
    check_backend(options.backend, options.precision)
    if options.backend in ("onnx", "onnx-int8"):
        raise ModelError(
            f"The backend {options.backend} opens exported folders only, with the pooling and prompt that they have. "
            f"Make one: samesense export {name} --output FOLDER"
            f"{' --int8' if options.backend == 'onnx-int8' else ''}"
        )
    by_numpy = _by_numpy(name, pooling, options)
    if by_numpy is not None:
        return by_numpy
    with needs_torch():
        return _by_torch(name, pooling, options)


def _by_numpy(name: str, pooling: PoolingName | None, options: _Options) -> Model | None:
    """Return a model for few texts; ``None`` for many, or where only torch computes what is asked for."""
    texts = options.texts
    elsewhere = options.device not in (None, "cpu") or options.backend != "auto" or options.precision == "bfloat16"
    if texts is None or elsewhere or options.prompt is not None or options.whitened:
        return None
    if sum(map(len, texts)) > MOST_LETTERS:
        return None
    from samesense.inference.plain.errors import NotPlainError
    from samesense.inference.plain.folder import open_plain

    folder = Path(resolve(name))
    if not folder.is_dir():  # of the hub, which is asked for its newest version
        return None
    open_torch = partial(_open_torch, name, pooling, options.device)
    try:
        encoder = open_plain(folder, open_torch, pooling=pooling, threads=options.threads)
    except NotPlainError as reason:
        logger.debug(f"{name} is computed by torch: {reason}")
        return None
    if encoder.work(texts) > MOST_WORK:
        return None
    return Model(encoder, name=name, choice=Choice("numpy", f"{len(texts)} texts, for which torch is not waited for"))


def _open_torch(name: str, pooling: PoolingName | None, device: str | None) -> SentenceTransformer:
    from samesense.encoder.assembly.build import build

    with needs_torch():
        return build(name, pooling=pooling, device=device)


def _by_torch(name: str, pooling: PoolingName | None, options: _Options) -> Model:
    source = resolve(name)
    check_model(source)  # before torch is loaded, which takes seconds

    from samesense.encoder.assembly.build import build, set_prompt
    from samesense.encoder.assembly.cross import is_cross_encoder, load_cross_encoder
    from samesense.encoder.forward.precision import has_bfloat16
    from samesense.encoder.forward.routes import has_routes
    from samesense.encoder.maps.sink import leave_out_sink

    if is_cross_encoder(source):
        if pooling is not None:
            raise ConfigError(f"A cross-encoder has no pooling to choose; received {pooling} for {name}.")
        return _cross_encoder(set_prompt(load_cross_encoder(source, device=options.device), options.prompt), options)
    encoder = set_prompt(build(name, pooling=pooling, device=options.device), options.prompt)
    if options.whitened:
        leave_out_sink(encoder)
    undecided = options.precision == "auto" and options.sample is not None and not has_routes(encoder)
    if not undecided or encoder.device.type != "cpu" or not has_bfloat16(encoder.device):
        return _torch(encoder, options)
    backends: tuple[Backend, ...] = ("torch-bfloat16", "torch-float32")
    return _fastest(source, backends, lambda backend: _torch(encoder, options, _precision(backend)), options)


def _torch(model: SentenceTransformer, options: _Options, precision: Precision | None = None) -> Model:
    from samesense.inference.models.torch_encoder import TorchEncoder

    encoder = TorchEncoder(
        model, precision or options.precision, deterministic=options.deterministic, threads=options.threads
    )
    return Model(encoder, name=type(model).__name__)


def _cross_encoder(model: CrossEncoder, options: _Options) -> Model:
    from samesense.encoder.assembly.cross import CachedScore, as_scores, describe_cross

    score = as_scores(model, precision=options.precision)
    return Model(
        score=CachedScore(score) if options.cache else score,
        name=type(model).__name__,
        protocol=describe_cross(model, options.precision),
        cross_encoder=model,
    )


def _exported(name: str, options: _Options) -> Model:
    torch_there = has_torch() and any(Path(name).expanduser().rglob("*.safetensors"))
    backend = options.backend
    if options.device not in (None, "cpu"):
        if backend in ("onnx", "onnx-int8"):
            raise ConfigError(
                f"An exported graph runs on the CPU; received device {options.device}. Take the backend torch for it."
            )
        backend = "torch"
    torch_asked = backend == "torch" or options.precision == "bfloat16"
    if torch_asked and not torch_there:
        _why_not_torch(name)
    bfloat16_there = torch_there and (torch_asked or options.sample is not None) and _computes_in_bfloat16()
    backends = exported_backends(
        read_description(name), backend, options.precision, torch_there=torch_there, bfloat16_there=bfloat16_there
    )

    def opened(backend: Backend) -> Model:
        if backend in ("onnx", "onnx-int8"):
            return Model(OnnxEncoder(name, backend, deterministic=options.deterministic, threads=options.threads))
        from samesense.encoder.assembly.build import build

        return _torch(build(name, device=options.device), options, _precision(backend))

    return _fastest(name, backends, opened, options)


def _fastest(source: str, backends: Sequence[Backend], open_by: Callable[[Backend], Model], options: _Options) -> Model:
    """Return the model opened by the backend that is chosen; each is opened once at most."""
    model_by = once(open_by)

    def opener(backend: Backend) -> Callable[[], Encode]:
        return lambda: model_by(backend).encode

    choice = choose(source, {backend: opener(backend) for backend in backends}, options.sample)
    model = model_by(choice.backend)
    model.choice = choice
    return model


@once
def _computes_in_bfloat16() -> bool:
    import torch

    from samesense.encoder.forward.precision import has_bfloat16

    return has_bfloat16(torch.device("cpu"))


def _why_not_torch(name: str) -> None:
    with needs_torch():
        import sentence_transformers  # noqa: F401  # absent: says what to install
    raise ModelError(
        f"{name} was exported without torch's weights. Take the backend onnx, or export it again with them."
    )


def _precision(backend: Backend) -> Precision:
    return "bfloat16" if backend == "torch-bfloat16" else "float32"
