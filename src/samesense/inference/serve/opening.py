"""Open what a server serves: models by name, their calibrations, a collection, and the file of keys."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from samesense.choices import BackendOption, check_threshold_option
from samesense.errors import ConfigError, ModelError
from samesense.inference.calibration.calibration import Calibration
from samesense.inference.calibration.storage import home_of, read, read_of
from samesense.inference.collection.collection import Collection, SearchHit
from samesense.inference.collection.embedder import embedder_of
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.inference.names import split_maps
from samesense.inference.search.ties import noise_of
from samesense.inference.serve.service import Serving
from samesense.inference.serve.tokens import served_tokens
from samesense.types import Embeddings, Precision

KEY_VARIABLE = "SAMESENSE_API_KEY"


ModelLike = Any
"""A name, or a model in memory; anything that :func:`samesense.load` takes."""


def open_models(
    models: ModelLike | Sequence[ModelLike] | Mapping[str, ModelLike],
    *,
    backend: BackendOption = "auto",
    precision: Precision = "auto",
    collection: Path | None = None,
    calibration: Path | None = None,
    threshold: float | str | None = None,
    **options: Any,
) -> list[Serving]:
    """Open the models of a server, each by its location or as ``NAME=LOCATION``.

    Args:
        models: folders, outputs of train or export, hub names, default, or models in memory; one, several, or several
            by name. The default name of a model is the last component of its location.
        backend: what computes; see :func:`~samesense.inference.models.load.load`.
        precision: arithmetic of torch.
        collection: a collection that was built with one of the models.
        calibration: calibration file, for a single model; by default that in each model's folder, if there is one.
        threshold: score from which on a pair is a yes, for a single model, or ``calibrated`` for that of each
            calibration.
        options: other fields of :class:`~samesense.inference.serve.service.Serving`.

    Raises:
        ConfigError: if several models are given one calibration or one number as a threshold.
        ModelError: if a model cannot be opened, the collection is that of another, or there is no calibration.
    """
    if threshold is not None:
        check_threshold_option(threshold)
    locations = named_models(models)
    if len(locations) > 1 and (calibration is not None or isinstance(threshold, float)):
        raise ConfigError(
            "A `calibration` or a `threshold` is that of one model; received several models. Keep each calibration in "
            "its model's folder, where it is found, and say --threshold calibrated."
        )
    for _, location in locations:
        if isinstance(location, str) and split_maps(location)[1] and not Path(location).expanduser().exists():
            raise ConfigError(
                f"A model is served as it stands, without a map behind its name; received {location!r}. With --shorten "
                "callers may ask for fewer 'dimensions'."
            )
    # Before the models, which take longer to open.
    calibrations = [_calibration_of(location, calibration) for _, location in locations]
    if threshold == "calibrated" and not any(calibrations):
        read_of(_address(locations[0][1]), calibration)  # raises the error that says what is missing
    loaded = [_open(location, backend, precision) for _, location in locations]
    servings = [
        _serving(name, model, model_calibration, threshold, options)
        for (name, _), model, model_calibration in zip(locations, loaded, calibrations, strict=True)
    ]
    if collection is not None:
        search, index = _open_search(collection, loaded)
        servings[index] = replace(servings[index], search=search)
    return servings


def _serving(
    name: str,
    model: Model,
    calibration: Calibration | None,
    threshold: float | str | None,
    options: Mapping[str, Any],
) -> Serving:
    """Return what serves a model; the word for a threshold stands for that of its calibration."""
    number: float | None = None
    if not isinstance(threshold, str):
        number = threshold
    elif calibration is not None:
        number = calibration.threshold()
    if model.embeds:
        work: dict[str, Any] = {"encode": model.encode}
    else:
        work = {"score": model.scores}
    return Serving(
        name=name,
        tokens=served_tokens(model),
        calibration=calibration,
        threshold=number,
        noise=noise_of(model.protocol),
        tells_tasks_apart=model.tells_tasks_apart,
        **work,
        **options,
    )


def named_models(models: ModelLike | Sequence[ModelLike] | Mapping[str, ModelLike]) -> list[tuple[str, ModelLike]]:
    """Return the name of each model with its location, or with the model itself; ConfigError if there is none."""
    if isinstance(models, Mapping):
        pairs = [(name, str(model) if isinstance(model, Path) else model) for name, model in models.items()]
    else:
        if not isinstance(models, Sequence) or isinstance(models, str):
            models = [models]
        pairs = [_split_name(model) for model in models]
    if not pairs:
        raise ConfigError("A server serves one model at least; received none. Name one, such as default.")
    return pairs


def _split_name(model: ModelLike) -> tuple[str, ModelLike]:
    """Return the name and the location of a model; in the path of an existing folder ``=`` is part of the path."""
    if not isinstance(model, str | Path):
        loaded = load(model)
        return Path(loaded.name).name, loaded
    text = str(model)
    name, equals, location = text.partition("=")
    path = Path(text).expanduser()
    if equals and not path.exists():
        return name, location
    # The name of the path "." is empty.
    return path.name or path.resolve().name, text


def _open(model: ModelLike, backend: BackendOption, precision: Precision) -> Model:
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
class _ModelSearch:
    """Search in a collection by the vectors of one model; checked, for it may be rebuilt with another model."""

    collection: Collection
    identity: str

    def search(self, vectors: Embeddings, **options: Any) -> Sequence[Sequence[SearchHit]]:
        return self.collection.search(vectors, **options, identity=self.identity)

    def text_search(self, texts: Sequence[str], **options: Any) -> Sequence[Sequence[SearchHit]]:
        return self.collection.text_search(texts, **options)


def _open_search(folder: Path, models: Sequence[Model]) -> tuple[_ModelSearch, int]:
    """Return a collection, and the index of the model that it was built with."""
    collection = Collection.open(folder)
    collection.search(np.eye(1, collection.about()["dim"]), top=1)  # fails now if a file or usearch is missing
    # ModelError is suppressed for all but the last model, so that the last one says what differs.
    *earlier, last = [index for index, model in enumerate(models) if model.embeds] or [0]
    for index in earlier:
        with suppress(ModelError):
            collection.check_model(embedder_of(models[index], models[index].name))
            return _ModelSearch(collection, models[index].identity), index
    collection.check_model(embedder_of(models[last], models[last].name))
    return _ModelSearch(collection, models[last].identity), last


def open_calibration(model: str, file: Path | None) -> Calibration | None:
    """Return the calibration in ``file``, or else in the model's folder; ``None`` if there is none."""
    home = home_of(model)
    if file is None and (home.calibration_path is None or not home.calibration_path.is_file()):
        return None
    return read(home, file)


def read_keys(file: Path | None) -> list[str]:
    """Return the keys in a file, one a line, or without a file that of the environment, if any."""
    if file is None:
        value = os.environ.get(KEY_VARIABLE)
        if value is not None and not value.strip():
            raise ConfigError(f"{KEY_VARIABLE} is set and empty, which would let everyone in. Give a key, or unset it.")
        if value is None:
            return []
        return _checked([value.strip()], KEY_VARIABLE)
    try:
        keys = [line.strip() for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read keys from {file}; give a text file with one key a line.") from error
    if not keys:
        raise ConfigError(f"There must be a key in {file}, one a line; it is empty.")
    return _checked(keys, str(file))


def _checked(keys: list[str], source: str) -> list[str]:
    """Return the keys; ConfigError for one that clients may encode differently, without quoting it."""
    for number, key in enumerate(keys, 1):
        if not (key.isascii() and key.isprintable()):
            raise ConfigError(f"A key must be of ASCII letters, digits and signs; key {number} of {source} is not.")
    return keys
