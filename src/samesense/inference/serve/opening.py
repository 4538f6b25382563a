"""From names of models, a collection and a file of keys to what a server serves."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from samesense.errors import ConfigError, ModelError
from samesense.inference.calibration.calibration import Calibration
from samesense.inference.calibration.storage import home_of, read, read_of
from samesense.inference.collection.collection import Collection, Found
from samesense.inference.collection.embedder import embedder_of
from samesense.inference.models.backends import BackendOption
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.inference.names import split_maps
from samesense.inference.search.ties import noise_of
from samesense.inference.serve.service import Serving
from samesense.inference.serve.tokens import served_tokens
from samesense.types import Embeddings, Precision

KEY_VARIABLE = "SAMESENSE_API_KEY"


ModelLike = Any
"""A name, or a model in memory; whatever :func:`samesense.load` takes."""


def open_models(
    models: ModelLike | Sequence[ModelLike] | Mapping[str, ModelLike],
    *,
    backend: BackendOption = "auto",
    precision: Precision = "auto",
    collection: Path | None = None,
    calibration: Path | None = None,
    threshold: float | str | None = None,
    **how: Any,
) -> list[Serving]:
    """Open the models of a server, each by its place or as ``NAME=PLACE``.

    Args:
        models: folders, outputs of train or export, hub names, default, or models in memory; one, several, or several
            by name. The name of one is its place's last part unless it is given.
        backend: what computes; see :func:`~samesense.inference.models.load.load`.
        precision: arithmetic of torch.
        collection: a collection that was built with one of them.
        calibration: file of the one model's calibration; by default that in each model's folder, if there is one.
        threshold: the one model's score from which on a pair is a yes, or ``calibrated`` for those of calibrations.
        how: other fields of :class:`~samesense.inference.serve.service.Serving`.

    Raises:
        ConfigError: if several models are given one calibration or one number as a threshold.
        ModelError: if a model cannot be opened, the collection is that of another, or there is no calibration.
    """
    placed = named_models(models)
    if len(placed) > 1 and (calibration is not None or isinstance(threshold, float)):
        raise ConfigError(
            "A `calibration` or a `threshold` is that of one model; received several models. Keep each calibration in "
            "its model's folder, where it is found, and say --threshold calibrated."
        )
    for _, location in placed:
        if isinstance(location, str) and split_maps(location)[1] and not Path(location).expanduser().exists():
            raise ConfigError(
                f"A model is served as it stands, without a map behind its name; received {location!r}. With --shorten "
                "callers may ask for fewer 'dimensions'."
            )
    fitted = [_calibration_of(location, calibration) for _, location in placed]
    if threshold == "calibrated" and not any(fitted):
        read_of(_address(placed[0][1]), calibration)  # says what is missing
    loaded = [_opened(location, backend, precision) for _, location in placed]
    servings = []
    for (name, _), model, fit in zip(placed, loaded, fitted, strict=True):
        model_threshold = threshold if not isinstance(threshold, str) else None if fit is None else fit.threshold()
        work = {"encode": model.encode} if model.embeds else {"score": model.scores}
        servings.append(
            Serving(
                name=name,
                tokens=served_tokens(model),
                calibration=fit,
                threshold=model_threshold,
                noise=noise_of(model.protocol),
                tells_tasks_apart=model.tells_tasks_apart,
                **work,
                **how,
            )
        )
    if collection is not None:
        searched, location = _open_search(collection, loaded)
        servings[location] = replace(servings[location], search=searched)
    return servings


def named_models(models: ModelLike | Sequence[ModelLike] | Mapping[str, ModelLike]) -> list[tuple[str, ModelLike]]:
    """Return the name of each model and its place, or the model itself; ConfigError if there is none."""
    if isinstance(models, Mapping):
        pairs = [(name, str(model) if isinstance(model, Path) else model) for name, model in models.items()]
    else:
        several = isinstance(models, Sequence) and not isinstance(models, str)
        pairs = [_named(model) for model in (models if several else [models])]
    if not pairs:
        raise ConfigError("A server serves one model at least; received none. Name one, such as default.")
    return pairs


def _named(model: ModelLike) -> tuple[str, ModelLike]:
    """Return name and place of a model; a place that is there may hold an equals sign."""
    if not isinstance(model, str | Path):
        loaded = load(model)
        return Path(loaded.name).name, loaded
    text = str(model)
    name, equals, location = text.partition("=")
    path = Path(text).expanduser()
    return (name, location) if equals and not path.exists() else (path.name or path.resolve().name, text)


def _opened(model: ModelLike, backend: BackendOption, precision: Precision) -> Model:
    if isinstance(model, str):
        return load(model, backend=backend, precision=precision)
    return load(model)


def _address(model: ModelLike) -> str:
    """Return the name by which a model was opened; ConfigError for one that is in memory only."""
    if isinstance(model, str):
        return model
    home = load(model).home
    if home is None:
        raise ConfigError("A calibration belongs to a model that is opened by its name; received one in memory.")
    return home[0]


def _calibration_of(model: ModelLike, file: Path | None) -> Calibration | None:
    """Return the calibration of a model; a model in memory that has no folder has none."""
    if file is None and not isinstance(model, str) and load(model).home is None:
        return None
    return open_calibration(_address(model), file)


@dataclass(frozen=True)
class _Searched:
    """A collection that is searched with the vectors of one model alone: it may be built anew with another."""

    collection: Collection
    identity: str

    def search(self, vectors: Embeddings, **how: Any) -> Sequence[Sequence[Found]]:
        return self.collection.search(vectors, **how, identity=self.identity)

    def text_search(self, texts: Sequence[str], **how: Any) -> Sequence[Sequence[Found]]:
        return self.collection.text_search(texts, **how)


def _open_search(folder: Path, models: Sequence[Model]) -> tuple[_Searched, int]:
    """Return a collection and which of the models it was built with."""
    collection = Collection.open(folder)
    collection.search(np.eye(1, collection.about()["dim"]), top=1)  # says now if a file or usearch is missing
    *earlier, last = [index for index, model in enumerate(models) if model.embeds] or [0]
    for index in earlier:
        with suppress(ModelError):
            collection.check_model(embedder_of(models[index], models[index].name))
            return _Searched(collection, models[index].identity), index
    collection.check_model(embedder_of(models[last], models[last].name))
    return _Searched(collection, models[last].identity), last


def open_calibration(model: str, file: Path | None) -> Calibration | None:
    """Return the calibration of ``file``, or the one in the model's folder, or none if neither is there."""
    home = home_of(model)
    if file is None and (home.kept is None or not home.kept.is_file()):
        return None
    return read(home, file)


def read_keys(file: Path | None) -> list[str]:
    """Return the keys of a file, one a line, or the one of the environment; none where neither is given."""
    if file is None:
        value = os.environ.get(KEY_VARIABLE)
        if value is not None and not value.strip():
            raise ConfigError(f"{KEY_VARIABLE} is set and empty, which would let everyone in. Give a key, or unset it.")
        return [] if value is None else _checked([value.strip()], KEY_VARIABLE)
    try:
        keys = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read keys from {file}; give a text file with one key a line.") from error
    if not keys:
        raise ConfigError(f"There must be a key in {file}, one a line; it is empty.")
    return _checked(keys, str(file))


def _checked(keys: list[str], place: str) -> list[str]:
    """Refuse keys that clients cannot send alike, without showing them."""
    for number, key in enumerate(keys, 1):
        if not (key.isascii() and key.isprintable()):
            raise ConfigError(f"A key must be of ASCII letters, digits and signs; key {number} of {place} is not.")
    return keys
