"""Open the models that are to be compared."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from samesense.data.rows.sources import numbered
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
    """Open every model before any is evaluated, so that a misspelt one costs nothing; all that fail are named.

    In a sequence, ``"NAME=MODEL"`` names a model. Models of one name are seeds of one thing; the seed of a run folder
    is read from it. Returned are what was given, and what it opened, in order.
    """
    names = name_models(models)
    if not names:
        raise ConfigError("There is nothing to compare; received no model. Name one or more.")
    seeds = [_seed(spec) for _, spec in names]
    keys = [(name, seed) for (name, _), seed in zip(names, seeds, strict=True)]
    for key in keys:
        if keys.count(key) > 1:
            raise ConfigError(
                f"Each model needs a name or a seed of its own; two are {key[0]!r} with seed {key[1]}. Name them as in "
                "first=FOLDER second=FOLDER."
            )
    scorers: list[tuple[str, Scorer]] = []
    failures: dict[str, ModelError] = {}
    for (name, spec), seed in zip(names, seeds, strict=True):
        try:
            model = load(
                spec, name=name, precision=precision, fit_texts=fit_texts, cache=_choose_cache(spec, cache), seed=seed
            )
        except ModelError as error:
            failures[name] = error
        else:
            scorers.append((_opened_as(spec, name), model))
    # A single error is raised as it is, with its own class and cause.
    if len(failures) == 1:
        raise next(iter(failures.values()))
    if failures:
        reasons = " ".join(f"{name}: {error}" for name, error in failures.items())
        raise ModelError(f"{len(failures)} of {len(names)} models cannot be opened. {reasons}")
    return scorers


def _opened_as(spec: Any, name: str) -> str:
    """Return what opens a model again: what was given, or of an opened model the name that opened it."""
    if isinstance(spec, str):
        return spec
    if isinstance(spec, Model) and spec.home is not None:
        return spec.home[0]
    return name


def _choose_cache(spec: Any, cache: Path | None) -> Path | bool:
    """Return where embeddings are kept: in memory alone those of a function, which may change between runs."""
    told_apart = isinstance(spec, str | Model) or hasattr(spec, "state_dict")
    if cache is not None and told_apart:
        return cache
    return True


def places_of(models: Models) -> list[str]:
    """Return the files and folders that models are read from, and the names of others; see :func:`open_models`."""
    return [place_of(spec) for _, spec in name_models(models) if isinstance(spec, str)]


def name_models(models: Models) -> list[tuple[str, Any]]:
    """Return name and specification of each model; a path is named by its last part, if no other is."""
    model_specs = list(models.values()) if isinstance(models, Mapping) else list(models)
    specs = [str(model) if isinstance(model, Path) else model for model in model_specs]
    if isinstance(models, Mapping):
        return list(zip(models, specs, strict=True))
    named_specs: list[tuple[str, Any]] = []
    for spec, last in zip(specs, _short_names(specs), strict=True):
        match = _NAMED.fullmatch(spec) if isinstance(spec, str) else None
        # A path may itself hold an equals sign.
        if match is not None and not Path(spec).exists():
            named_specs.append((match["name"].strip(), match["spec"]))
        else:
            named_specs.append((last, spec))
    return named_specs


def _short_names(specs: Sequence[Any]) -> list[str]:
    """Return a name for each specification: of a path as many of its last parts as tell it from the others."""
    split_specs = [_parts(spec) for spec in specs]
    deepest = max((len(segments) for _, segments, _ in split_specs), default=1)
    names = [""] * len(split_specs)
    for depth in range(1, deepest + 1):
        short = [f"{before}{'/'.join(segments[-depth:])}{after}" for before, segments, after in split_specs]
        names = [
            name if short.count(name) == 1 and names[index] == "" else names[index] for index, name in enumerate(short)
        ]
    alike = [spec for spec, name in zip(specs, names, strict=True) if not name and not isinstance(spec, str)]
    # Objects in memory are named by their class, which several may share.
    numbered_names = iter(numbered([_parts(spec)[1][-1] for spec in alike]))
    return [
        name or (spec if isinstance(spec, str) else next(numbered_names))
        for spec, name in zip(specs, names, strict=True)
    ]


def _parts(spec: Any) -> tuple[str, list[str], str]:
    """Return what stands before the path of a specification, the parts of the path, and what stands behind it.

    What is no file or folder is one part. A model in a run folder has the name of the run.
    """
    if not isinstance(spec, str):
        return "", [str(getattr(spec, "name", "") or getattr(spec, "__qualname__", type(spec).__name__))], ""
    match = _PATH.fullmatch(spec)
    if match is None or not Path(match["path"]).expanduser().exists():
        return "", [spec], ""
    return match["kind"] or "", list(_run_of(Path(match["path"]).expanduser().resolve()).parts), match["rest"]


def _run_of(path: Path) -> Path:
    """Return the run folder whose model a path is, else the path itself."""
    if path.name == "model" and (path.parent / "manifest.json").is_file():
        return path.parent
    return path


def _seed(spec: Any) -> int | None:
    """Return the seed of the training run in the folder that a specification names, if there is one."""
    if not isinstance(spec, str):
        return getattr(spec, "seed", None)
    manifest = _run_of(Path(place_of(spec)).expanduser()) / "manifest.json"
    if not manifest.is_file():
        return None
    try:
        settings = read_json(manifest).get("settings")
    except DataError as error:
        raise ModelError(str(error)) from error
    seed = settings.get("seed") if isinstance(settings, dict) else None
    if isinstance(seed, int):
        return seed
    return None
