"""``samesense.serve`` and ``app``: models over HTTP, by the library's own server or any ASGI server."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from samesense.choices import BackendOption, check_choice, check_list
from samesense.errors import ConfigError, MissingExtraError
from samesense.inference.serve.limits import Limits
from samesense.types import Precision

if TYPE_CHECKING:
    from fastapi import FastAPI

LIMITS = Limits()

MODELS_VARIABLE = "SAMESENSE_MODELS"

Long = Literal["cut", "refuse"]


def serve(  # noqa: PLR0913 - the flags of the command
    models: Any,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    any_model_name: bool = False,
    api_key_file: str | Path | None = None,
    allowed_host: Sequence[str] | None = None,
    collection: str | Path | None = None,
    labels: str | Path | None = None,
    calibration: str | Path | None = None,
    threshold: float | Literal["calibrated"] | None = None,
    normalize: bool = True,
    shorten: bool = False,
    token_ids: bool = False,
    long: Long = "cut",
    limits: Limits = LIMITS,
    backend: BackendOption = "auto",
    precision: Precision = "auto",
) -> None:
    """Serve models over HTTP: OpenAI's embeddings, similarity, reranking, search, and a page to try them on.

    Ctrl-C or SIGTERM ends the server once it has answered the requests that it accepted.

    Args:
        models: model folders, outputs of ``train`` or ``export``, hub names, or ``"default"``; requests name a model by
            the last part of its path, or by NAME of ``NAME=PATH``; see :func:`samesense.load` for models in memory,
            which a mapping names.
        host: address to listen on; ``"0.0.0.0"`` for all, best with a key.
        port: port to listen on; 0 takes a free one.
        any_model_name: accept any model name in requests, such as text-embedding-3-small, for the only model; also with
            one model of embeddings and one cross-encoder.
        api_key_file: file of keys, one a line; requests must carry one of them; else ``SAMESENSE_API_KEY``, if it is
            set.
        allowed_host: accepted Host headers, besides the names of this machine; without a key, and listening on this
            machine only, no others are accepted.
        collection: folder made by ``samesense index`` with one of the models, for ``/search``.
        labels: file, ``.tsv`` or ``.jsonl``, that keeps the labels given to pairs on the page, as
            :func:`samesense.label` does.
        calibration: file made by :func:`samesense.calibrate` for the one model; by default that in each model's folder,
            if there is one.
        threshold: answer yes or no with every similarity: yes if it is at least this; ``"calibrated"`` takes the
            threshold of each model's calibration.
        normalize: return vectors of length 1.
        shorten: allow requests for fewer dimensions; right only for a model trained for it (Matryoshka).
        token_ids: accept token ids in place of texts; right only for clients that use the model's own tokenizer.
        long: ``"cut"`` or ``"refuse"`` texts that are longer than the model reads.
        limits: limits on requests, such as ``Limits(max_texts=64)``, from ``samesense.api.serve``.
        backend: ``"auto"``, ``"torch"``, or for exported folders ``"onnx"``, ``"onnx-int8"``, ``"openvino"``,
            ``"openvino-bfloat16"`` or ``"openvino-int8"``; ``"auto"`` is onnx for these.
        precision: arithmetic of torch; ``"auto"`` is bfloat16 where the processor supports it.

    Raises:
        ConfigError: if options contradict each other, or the server cannot listen on the address.
        MissingExtraError: without the extra ``serve``.
        ModelError: if a model cannot be loaded.

    Example:
        >>> samesense.serve("runs/mine", port=8000)  # doctest: +SKIP
        samesense: serving 'mine' at http://127.0.0.1:8000
    """
    _check(long, allowed_host)
    # The check comes first, as these imports fail without the extra `serve`.
    from samesense.inference.labelling.file import open_labels
    from samesense.inference.serve.http.labels import BY
    from samesense.inference.serve.opening import open_models, read_keys
    from samesense.inference.serve.run import serve as run
    from samesense.inference.serve.services import Services

    # Before the models: a wrong file of keys shows at once.
    keys = read_keys(_path(api_key_file))
    servings = open_models(
        models,
        backend=backend,
        precision=precision,
        collection=_path(collection),
        calibration=_path(calibration),
        threshold=threshold,
        normalize=normalize,
        shorten=shorten,
        token_ids=token_ids,
        long=long,
    )
    services = Services(servings, limits=limits, any_name=any_model_name)
    with nullcontext() if labels is None else open_labels(Path(labels), BY) as file:
        run(services, host=host, port=port, keys=keys, hosts=allowed_host or (), labels=file)


def app(  # noqa: PLR0913 - those of serve
    models: Any = None,
    *,
    any_model_name: bool = False,
    api_key_file: str | Path | None = None,
    allowed_host: Sequence[str] | None = None,
    collection: str | Path | None = None,
    calibration: str | Path | None = None,
    threshold: float | Literal["calibrated"] | None = None,
    normalize: bool = True,
    shorten: bool = False,
    token_ids: bool = False,
    long: Long = "cut",
    limits: Limits = LIMITS,
    backend: BackendOption = "auto",
    precision: Precision = "auto",
) -> FastAPI:
    """Return the application of :func:`serve` for an ASGI server, such as uvicorn or gunicorn, or to mount in another.

    The models are loaded when the application starts, in each worker, or at the first request if it is mounted in an
    application that does not start it; they are closed when it stops.

    Args:
        models: see :func:`serve`; ``None`` takes the names in ``SAMESENSE_MODELS``, separated by spaces.
        any_model_name, api_key_file, collection, calibration, threshold, normalize, shorten: see :func:`serve`.
        token_ids, long, limits, backend, precision: see :func:`serve`.
        allowed_host: accepted Host headers; ``None`` for any.

    Returns:
        A ``fastapi.FastAPI``.

    Raises:
        ConfigError: if no model is named, or options contradict each other.
        MissingExtraError: without the extra ``serve``.

    Example:
        >>> app = samesense.app("runs/mine")  # in service.py; then: uvicorn service:app --workers 2  # doctest: +SKIP
    """
    _check(long, allowed_host)
    from samesense.inference.serve.http.app import build_app
    from samesense.inference.serve.http.hosts import allowed_names
    from samesense.inference.serve.opening import named_models, open_models, read_keys
    from samesense.inference.serve.services import Services

    chosen = _models_of_environment() if models is None else models
    # Names are checked now; the models are opened when the application starts.
    if isinstance(chosen, str | Path | Sequence | Mapping):
        # Called only to raise now: the models are opened when the application starts.
        named_models(chosen)
    opening = partial(
        open_models,
        chosen,
        backend=backend,
        precision=precision,
        collection=_path(collection),
        calibration=_path(calibration),
        threshold=threshold,
        normalize=normalize,
        shorten=shorten,
        token_ids=token_ids,
        long=long,
    )
    services = Services(opening, limits=limits, any_name=any_model_name)
    return build_app(services, keys=read_keys(_path(api_key_file)), hosts=allowed_names(allowed_host or ()))


def _check(long: Long, allowed_host: Sequence[str] | None) -> None:
    check_choice("long", long, Long)
    if allowed_host is not None:
        check_list("allowed_host", allowed_host)
    MissingExtraError.check("serve", "fastapi", "uvicorn", "prometheus-client")


def _path(file: str | Path | None) -> Path | None:
    if file is None:
        return None
    return Path(file)


def _models_of_environment() -> list[str]:
    # Like a shell, so that a path with spaces can be quoted.
    names = shlex.split(os.environ.get(MODELS_VARIABLE, ""))
    if not names:
        raise ConfigError(
            f"No model is named. Give one, as in samesense.app('runs/mine'), or set {MODELS_VARIABLE} to names with "
            "spaces between."
        )
    return names
