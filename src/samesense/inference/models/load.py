"""Open a model by its name or from an object in memory, and choose the backend that computes it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cache as once
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from samesense.choices import BackendOption, check_choice, check_count
from samesense.encoder.names import resolve, split_options
from samesense.errors import ConfigError, ModelError
from samesense.execution.progress import stage
from samesense.execution.torch_import import uncollected
from samesense.hub import check_model
from samesense.inference.models.backends import (
    Backend,
    Choice,
    check_backend,
    choose,
    exported_backends,
    keeps_spearman,
)
from samesense.inference.models.functions import FunctionEncoder, open_kind
from samesense.inference.models.maps import apply_maps
from samesense.inference.models.model import Model
from samesense.inference.models.optional_deps import has_openvino, has_torch, needs_torch
from samesense.inference.names import parse_maps, settled_name, split_kind, split_maps
from samesense.inference.onnx.format import is_exported, is_graph_backend, read_description
from samesense.inference.onnx.graph_encoder import EXPORT_FLAGS
from samesense.inference.onnx.open_graph import open_graph
from samesense.inference.onnx.openvino_encoder import openvino_has_bfloat16
from samesense.types import Encode, PoolingName, Precision

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder, SentenceTransformer

# Modules that load torch are imported by the functions that need them: NumPy and ONNX open a model in milliseconds.

logger = logging.getLogger(__name__)

MOST_WORK = 50_000_000_000
"""Multiplications up to which NumPy is faster than importing torch: three seconds on two slow cores."""

MOST_LETTERS = 20_000_000
"""Characters above which NumPy is not used, even for a cheap model."""


def load(  # noqa: PLR0913 - the options of every kind of model
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
            the table in :mod:`samesense.inference.names`. Or an object in memory: a SentenceTransformer, a
            CrossEncoder, a function from texts to vectors, or a :class:`Model`, which keep their device, backend and
            pooling.
        name: name of the model in results; ``None`` for the name it was opened by.
        backend: what computes. ``"auto"`` takes the fastest by an earlier measurement, or by one now if ``sample`` is
            large; without a sample, onnx for an exported folder and torch for others.
        precision: arithmetic of torch; ``"auto"`` is bfloat16 if the processor supports it, and ``"float32"`` keeps
            figures comparable between machines. An Origin keeps the one in which it was made.
        device: torch device; ``None`` lets sentence-transformers choose.
        pooling: pooling to use instead of the model's own; the same as ``NAME?pooling``.
        deterministic: make the bits of a vector depend on its text alone, not on the batch; this is slower, and no
            backend is measured.
        sample: the texts to be encoded, for choosing the backend.
        texts: all texts that the model is opened for, if they are known, or ``sample``. If they are few, NumPy encodes
            them in float32, to the same six digits, where it can read the model's folder, so that torch need not be
            imported.
        fit_texts: unlabelled texts on which ``+whiten`` is fitted; duplicates count as often as they
            occur.
        cache: encode each distinct text once, and score each distinct pair of a cross-encoder once. A folder keeps the
            embeddings of models between runs; other kinds are quick to read, or may change.
        seed: seed of the training run, if known.
        calibration: file made by ``samesense calibrate``; ``None`` for the one in the model's folder, which is read
            when it is needed.
        threads: number of threads; ``None`` takes ``OMP_NUM_THREADS`` if set, else those the process may use.
        dim: keep the first ``dim`` numbers of each vector, at unit length; the same as ``NAME+dim:64``.
        prompt: prompt to use instead of the model's default: one of its prompts by name, a text, or a template
            with ``{text}`` in it. Only for a model that torch computes and that is opened by its name.

    Raises:
        ModelError: if there is no such model, or it was not exported for the backend.
        ConfigError: if the name is malformed, the options contradict each other, or a map has no texts to fit on.
        MissingExtraError: if torch is needed and not installed, or the default's package is not.
    """
    check_choice("backend", backend, BackendOption)
    check_choice("precision", precision, Precision)
    dim_map = "" if dim is None else f"+dim:{check_count('dim', dim)}"
    if isinstance(model, Model):
        keeps = {"prompt": prompt is not None, "calibration": calibration is not None}
        computes = {"deterministic": deterministic, "backend": backend != "auto"}
        _check_opened(keeps, computes)
        return _rename(apply_maps(model, dim_map, None), name, seed)
    if texts is None:
        texts = sample
    if deterministic:
        # What computes must not depend on the texts: neither a measurement nor their number chooses it.
        sample = None
        texts = None
    options = _Options(
        backend=backend,
        precision=precision,
        device=device,
        pooling=pooling,
        deterministic=deterministic,
        sample=sample,
        texts=texts,
        threads=threads,
        cache=bool(cache),
        prompt=prompt,
    )

    if not isinstance(model, str | Path):
        loaded = _wrap_object(model, options)
        if cache:
            loaded.remember(_cache_folder(cache))
        loaded.name = name or loaded.name
        loaded.seed = seed
        return apply_maps(loaded, dim_map, None)

    full_name = f"{model}{dim_map}"
    base, maps = split_maps(full_name)
    # Known before the model is opened, as its attention sink is then left out.
    whitened = any(map_name == "whiten" for map_name, _ in parse_maps(maps))
    with stage(f"loading {base}"):
        loaded = _open(base, replace(options, whitened=whitened))
    # Before the maps, so that what they map is cached.
    if cache:
        loaded.remember(_cache_folder(cache, kind=split_kind(base)[0]))
    loaded = apply_maps(loaded, maps, fit_texts, cache=bool(cache))
    loaded.name = name or full_name
    loaded.seed = seed
    # The calibration in the folder is for the scores with the model's own prompt and pooling.
    if calibration is not None or (prompt is None and pooling is None):
        # Both are read when a calibration is needed, when the process may be in another folder.
        file = None if calibration is None else Path(calibration).expanduser().absolute()
        loaded.home = settled_name(full_name), file
    return loaded


@dataclass(frozen=True, kw_only=True)
class _Options:
    """Options of :func:`load` for opening a model."""

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
    whitened: bool = False  # by a map behind the name


def _cache_folder(cache: bool | Path, kind: str = "") -> Path | None:
    """Return the folder that keeps embeddings between runs; ``None`` if they are kept in memory alone.

    Embeddings of other kinds than models are not kept: they are quick to read, or may change.
    """
    if isinstance(cache, bool) or kind:
        return None
    return Path(cache)


def _check_opened(keeps: Mapping[str, bool], computes: Mapping[str, bool]) -> None:
    """Raise ConfigError if options are given that a model has settled when it was opened."""
    for option, is_given in keeps.items():
        if is_given:
            raise ConfigError(f"An opened model keeps prompt and calibration; received `{option}`. Open it with them.")
    for option, is_given in computes.items():
        if is_given:
            raise ConfigError(f"An opened model computes as it was opened; received `{option}`. Open it with that.")


def _rename(model: Model, name: str | None, seed: int | None) -> Model:
    """Return a model with another name or seed; the given one is not changed."""
    if name is None and seed is None:
        return model
    renamed = copy(model)
    renamed.name = name or model.name
    renamed.seed = model.seed if seed is None else seed
    return renamed


def _wrap_object(model: Any, options: _Options) -> Model:
    """Return the model of an object in memory: of sentence-transformers, or a function."""
    if options.prompt is not None:
        raise ConfigError("A model in memory keeps its prompt; received `prompt`. Set its default_prompt_name.")
    # Unless sentence-transformers is imported already, the object cannot be of its classes.
    library = sys.modules.get("sentence_transformers")
    if library is not None and isinstance(model, library.SentenceTransformer):
        return _wrap_torch(model, options)
    if library is not None and isinstance(model, library.CrossEncoder):
        return _wrap_cross_encoder(model, options)
    if not callable(model):
        # A run, as train returns it.
        fix = " Give its folder: run.model." if isinstance(getattr(model, "model", None), Path) else ""
        raise ConfigError(
            "A model is a name, a SentenceTransformer, a CrossEncoder, or a function from texts to vectors; received "
            f"{type(model).__name__}.{fix}"
        )
    name = getattr(model, "__qualname__", type(model).__name__)
    return Model(FunctionEncoder(model, f"cosine, embeddings by {name}"), name=name)


def _open(base: str, options: _Options) -> Model:
    """Open a model by its name, without maps: another kind, an exported folder, or a model for NumPy or torch."""
    kind, source = split_kind(base)
    if kind:
        if options.backend != "auto" or options.pooling is not None or options.prompt is not None:
            raise ConfigError(f"Backend, pooling and prompt are chosen for models; {base} has none. Leave them out.")
        return open_kind(
            kind, source, device=options.device, precision=options.precision, deterministic=options.deterministic
        )
    name, pooling, template = split_options(base)
    pooling = options.pooling or pooling
    if template is not None:
        if options.prompt is not None:
            raise ConfigError(f"A template is a prompt; received both, in {base} and as `prompt`. Leave one out.")
        options = replace(options, prompt=template)
    if is_exported(name) and pooling is None and options.prompt is None:
        return _open_exported(name, options)
    check_backend(options.backend, options.precision)
    if is_graph_backend(options.backend):
        flag = EXPORT_FLAGS.get(options.backend, "")
        absent = "" if Path(name).expanduser().exists() else f"There is no folder at {name}; if it has moved, name it. "
        raise ModelError(
            f"{absent}The backend {options.backend} opens exported folders only, with the pooling and prompt that they "
            f"have. Make one: samesense export {quote(str(name))} --output FOLDER {flag}".rstrip()
        )
    model = _open_by_numpy(name, pooling, options)
    if model is not None:
        return model
    with needs_torch():
        return _open_by_torch(name, pooling, options)


def _open_by_numpy(name: str, pooling: PoolingName | None, options: _Options) -> Model | None:
    """Return a model computed by NumPy, for few texts; ``None`` for many, or if the options need torch."""
    texts = options.texts
    is_cpu = options.device in (None, "cpu")
    if not is_cpu or options.backend != "auto" or options.precision == "bfloat16":
        return None
    if texts is None or options.prompt is not None or options.whitened:
        return None
    if sum(map(len, texts)) > MOST_LETTERS:
        return None
    # Loads the tokenizers, which other backends bring along themselves.
    from samesense.inference.plain.folder import open_plain
    from samesense.inference.plain.weights import NotPlainError

    folder = Path(resolve(name))
    if not folder.is_dir():  # a hub name: its newest version is requested from the hub
        return None
    open_torch = partial(_open_torch, name, pooling, options.device)
    try:
        encoder = open_plain(folder, open_torch, pooling=pooling, threads=options.threads)
    except NotPlainError as reason:
        logger.debug(f"{name} is computed by torch: {reason}")
        return None
    # Only the opened model tells how much work the texts are.
    if encoder.work(texts) > MOST_WORK:
        return None
    return Model(encoder, name=name, choice=Choice("numpy", f"{len(texts)} texts, for which torch is not waited for"))


def _open_torch(name: str, pooling: PoolingName | None, device: str | None) -> SentenceTransformer:
    with needs_torch():
        with uncollected():
            from samesense.encoder.assembly.build import build
        return build(name, pooling=pooling, device=device)


def _open_by_torch(name: str, pooling: PoolingName | None, options: _Options) -> Model:
    """Open a model or cross-encoder with torch, in the faster precision if that may be measured."""
    source = resolve(name)
    check_model(source)  # before torch is loaded, which takes seconds

    with uncollected():
        from samesense.encoder.assembly.build import build_named, set_prompt
        from samesense.encoder.assembly.cross import is_cross_encoder, load_cross_encoder
        from samesense.encoder.forward.precision import has_bfloat16
        from samesense.encoder.forward.routes import has_routes
        from samesense.encoder.maps.sink import leave_out_sink

    if is_cross_encoder(source):
        if pooling is not None:
            raise ConfigError(f"A cross-encoder has no pooling to choose; received {pooling} for {name}.")
        return _wrap_cross_encoder(
            set_prompt(load_cross_encoder(source, device=options.device), options.prompt), options
        )
    encoder = build_named(name, pooling=pooling, prompt=options.prompt, device=options.device)
    if options.whitened:
        leave_out_sink(encoder)
    undecided = options.precision == "auto" and options.sample is not None and not has_routes(encoder)
    if not undecided or encoder.device.type != "cpu" or not has_bfloat16(encoder.device):
        return _wrap_torch(encoder, options)
    backends: tuple[Backend, ...] = ("torch-bfloat16", "torch-float32")
    return _open_fastest(source, backends, lambda backend: _wrap_torch(encoder, options, _precision(backend)), options)


def _wrap_torch(model: SentenceTransformer, options: _Options, precision: Precision | None = None) -> Model:
    from samesense.inference.models.torch_encoder import TorchEncoder

    encoder = TorchEncoder(
        model, precision or options.precision, deterministic=options.deterministic, threads=options.threads
    )
    return Model(encoder, name=type(model).__name__)


def _wrap_cross_encoder(model: CrossEncoder, options: _Options) -> Model:
    from samesense.encoder.assembly.cross import CachedScore, as_scores, describe_cross

    score = as_scores(model, precision=options.precision)
    return Model(
        score=CachedScore(score) if options.cache else score,
        name=type(model).__name__,
        protocol=describe_cross(model, options.precision),
        cross_encoder=model,
    )


def _open_exported(name: str, options: _Options) -> Model:
    """Open an exported folder with the fastest of the backends that it has."""
    torch_there = has_torch() and any(Path(name).expanduser().rglob("*.safetensors"))
    backend = options.backend
    if options.device not in (None, "cpu"):
        if is_graph_backend(backend):
            raise ConfigError(
                f"An exported graph runs on the CPU; received device {options.device}. Take the backend torch for it."
            )
        backend = "torch"
    torch_requested = backend == "torch" or options.precision == "bfloat16"
    if torch_requested and not torch_there:
        _raise_without_torch(name)
    # The last condition loads torch, so the others come first.
    bfloat16_there = torch_there and (torch_requested or options.sample is not None) and _computes_in_bfloat16()
    description = read_description(name)
    openvino_there = has_openvino()
    # Where it cannot be chosen, OpenVINO need not be imported.
    choosable = options.sample is not None and keeps_spearman(description, "openvino-bfloat16")
    backends = exported_backends(
        description,
        backend,
        options.precision,
        torch_there=torch_there,
        bfloat16_there=bfloat16_there,
        openvino_there=openvino_there,
        openvino_bfloat16_there=openvino_there and choosable and openvino_has_bfloat16(),
    )

    def open_by(backend: Backend) -> Model:
        if is_graph_backend(backend):
            return Model(open_graph(name, backend, deterministic=options.deterministic, threads=options.threads))
        from samesense.encoder.assembly.build import build

        return _wrap_torch(build(name, device=options.device), options, _precision(backend))

    return _open_fastest(name, backends, open_by, options)


def _open_fastest(
    source: str, backends: Sequence[Backend], open_by: Callable[[Backend], Model], options: _Options
) -> Model:
    """Return the model opened by the chosen backend; each backend is opened at most once."""
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


def _raise_without_torch(name: str) -> None:
    """Raise the error for an exported folder that torch cannot compute."""
    with needs_torch():
        import sentence_transformers  # noqa: F401  # if it is missing, the error says what to install
    raise ModelError(
        f"{name} was exported without torch's weights. Take the backend onnx, or export it again with them."
    )


def _precision(backend: Backend) -> Precision:
    if backend == "torch-bfloat16":
        return "bfloat16"
    return "float32"
