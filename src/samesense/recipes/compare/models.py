"""Open the models that are to be compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from samesense.errors import ConfigError, DataError, ModelError
from samesense.files import read_json
from samesense.inference.models.load import load
from samesense.inference.models.model import Model
from samesense.inference.names import place_of
from samesense.types import Precision, Scorer

Models = Sequence[Any] | Mapping[str, Any]

_NAMED = re.compile(r"(?P<name>[^=/:]+)=(?P<spec>.+)")
_PATH = re.compile(r"(?P<kind>(?:vectors|words|origin):)?(?P<path>[^+?]*[/\\][^+?]*)(?P<rest>.*)")


def open_models(
    models: Models,
    *,
    precision: Precision = "float32",
    fit_texts: Sequence[str] | None = None,
    cache: Path | None = None,
) -> list[tuple[str, Scorer]]:
    """Open every model before any is evaluated, so that a misspelt one costs nothing.

    In a sequence, ``"NAME=MODEL"`` names a model. Models of one name are seeds of one thing; the seed of a run folder
    is read from it. Returned are what was given, and what it opened, in order.
    """
    names = _names(models)
    seeds = [_seed(spec) for _, spec in names]
    keys = [(name, seed) for (name, _), seed in zip(names, seeds, strict=True)]
    for key in keys:
        if keys.count(key) > 1:
            raise ConfigError(
                f"Each model needs a name or a seed of its own; two are {key[0]!r} with seed {key[1]}. Name them as in "
                "first=FOLDER second=FOLDER."
            )
    return [
        (
            spec if isinstance(spec, str) else name,
            load(spec, name=name, precision=precision, fit_texts=fit_texts, cache=_kept(spec, cache), seed=seed),
        )
        for (name, spec), seed in zip(names, seeds, strict=True)
    ]


def _kept(spec: Any, cache: Path | None) -> Path | bool:
    """Return where embeddings are kept: in memory alone those of a function, which may change between runs."""
    told_apart = isinstance(spec, str | Model) or hasattr(spec, "state_dict")
    return cache if cache is not None and told_apart else True


def places_of(models: Models) -> list[str]:
    """Return the files and folders that models are read from, and the names of others; see :func:`open_models`."""
    return [place_of(spec) for _, spec in _names(models) if isinstance(spec, str)]


def _names(models: Models) -> list[tuple[str, Any]]:
    """Return name and specification of each model; a path is named by its last part, if no other is."""
    given = models.values() if isinstance(models, Mapping) else models
    specs = [str(model) if isinstance(model, Path) else model for model in given]
    if isinstance(models, Mapping):
        return list(zip(models, specs, strict=True))
    named: list[tuple[str, Any]] = []
    short = [_short(spec) for spec in specs]
    for spec, last in zip(specs, short, strict=True):
        match = _NAMED.fullmatch(spec) if isinstance(spec, str) else None
        if match is not None and not Path(spec).exists():
            named.append((match["name"].strip(), match["spec"]))
        else:
            named.append((last if short.count(last) == 1 else str(spec), spec))
    return named


def _short(spec: Any) -> str:
    """Return a specification whose path, if there is such a file or folder, is cut to its last part."""
    if not isinstance(spec, str):
        return str(getattr(spec, "name", "") or getattr(spec, "__qualname__", type(spec).__name__))
    match = _PATH.fullmatch(spec)
    if match is None or not Path(match["path"]).expanduser().exists():
        return spec
    return f"{match['kind'] or ''}{Path(match['path']).expanduser().resolve().name}{match['rest']}"


def _seed(spec: Any) -> int | None:
    """Return the seed of the training run in the folder that a specification names, if there is one."""
    if not isinstance(spec, str):
        return getattr(spec, "seed", None)
    manifest = Path(spec.partition("+")[0]).expanduser() / "manifest.json"
    if not manifest.is_file():
        return None
    try:
        seed = read_json(manifest).get("settings", {}).get("seed")
    except DataError as error:
        raise ModelError(str(error)) from error
    return seed if isinstance(seed, int) else None
