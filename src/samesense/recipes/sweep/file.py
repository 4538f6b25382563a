"""The file of a sweep: what is varied, on which data, with which seeds."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import product
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator, model_validator

from samesense.errors import ConfigError
from samesense.recipes.settings import as_config_error, read_toml
from samesense.recipes.sweep.data_entry import DataEntry, Table
from samesense.results.results import is_mean
from samesense.types import Precision

LAYERS = "layers"
"""A setting of sweeps alone: how many of the start model's first layers are kept."""

METHOD = "method"
"""A setting of sweeps alone: the method whose settings the others are."""

STARTING = ("model", LAYERS, "pooling", "first", "prompt")
"""Settings of a variant that decide from which model it starts, and how that makes vectors."""

_PLACE = re.compile(r"\$\{(\w+)\}")


class Variant(Table):
    """One combination of settings, and the data sets that it is run on."""

    name: str
    settings: dict[str, Any]
    data: tuple[str, ...]
    tune: dict[str, list[Any]] = Field(default_factory=dict)

    def tried(self) -> list[Variant]:
        """Return the variant with every combination of what is tuned."""
        return [
            Variant(
                name=f"{self.name}: {_words(combination)}", settings={**self.settings, **combination}, data=self.data
            )
            for combination in _combinations(self.tune)
        ]


Untrained = Literal["none", "mean", "whiten"]
"""How a start that is evaluated untrained is standardized."""


class Start(Table):
    """A start that is evaluated untrained, and the variants that begin from it."""

    name: str
    standardize: Untrained
    settings: dict[str, Any]  # of ``STARTING``, as the variants give them
    variants: tuple[Variant, ...]


class SweepFile(Table):
    """Content of the file. A variant is one case with one combination of the grid; each is run on each data set.

    Of what is tuned, every combination is tried with the first seed; all seeds are run with the one best on dev.
    """

    seeds: tuple[int, ...] = Field((1, 2, 3), min_length=1)
    config: str = "auto"
    keep: Literal["none", "best", "all"] = "none"
    start: bool | tuple[Untrained, ...] = False
    against: str | None = None
    untrainable: Literal["refuse", "skip"] = "refuse"
    test_precision: Precision = "float32"
    rows_seed: int = Field(0, ge=0)
    base: dict[str, Any] = Field(default_factory=dict)
    grid: dict[str, list[Any]] = Field(default_factory=dict)
    tune: dict[str, list[Any]] = Field(default_factory=dict)
    case: tuple[dict[str, Any], ...] = ()
    data: tuple[DataEntry, ...] = Field(min_length=1)

    @field_validator("start", mode="before")
    @classmethod
    def _starts(cls, start: Any) -> Any:
        requested = list(start) if isinstance(start, list | tuple) else [start]
        if not isinstance(start, bool) and any(untrained not in tuple(STARTS) for untrained in requested):
            raise ConfigError(
                f'start is true, false or a list of {", ".join(STARTS)}, as in start = ["none", "whiten"]; received '
                f"{start!r}."
            )
        if not isinstance(start, str):
            return start
        return (start,)

    @model_validator(mode="after")
    def _consistent(self) -> SweepFile:
        variants = self.variants()
        names = [start.name for start in self.starts()] + [variant.name for variant in variants]
        self._check_names(names)
        tables = (self.base, self.grid, *(v.tune for v in variants), *self.case, *(e.settings for e in self.data))
        if any("seed" in table for table in tables):
            raise ConfigError("Seeds of a sweep stand in its list seeds, as in: seeds = [1, 2, 3]; received seed.")
        self._check_choices(variants)
        untested = next((entry.name for entry in self.data if not entry.tests()), None)
        if untested is not None:
            raise ConfigError(f"Each data set needs a test set or more; {untested} has none.")
        if self.against is not None and self.against not in names:
            raise ConfigError(f"against names a variant, one of {'; '.join(names)}; received {self.against!r}.")
        return self

    def _check_names(self, variants: list[str]) -> None:
        """Raise ConfigError if two things of a kind have one name; those of variants are given."""
        for what, names in (
            ("seeds", list(map(str, self.seeds))),
            ("data sets", [entry.name for entry in self.data]),
            ("variants", variants),
            ("test sets", [name for entry in self.data for name in entry.tests()]),
        ):
            twice = next((name for name in names if names.count(name) > 1), None)
            if twice is not None:
                raise ConfigError(f"The {what} of a sweep must differ; {twice} stands there twice.")
            mean = next((name for name in names if is_mean(name)), None)
            if mean is not None and what == "test sets":
                raise ConfigError(f"A test set of a sweep is not called as their mean is; received {mean!r}.")

    def _check_choices(self, variants: list[Variant]) -> None:
        """Raise ConfigError if a setting that varies has no value, or there is no dev set to choose by."""
        tuned = [variant.tune for variant in variants]
        for what, grids in (("of the grid", [self.grid]), ("that is tuned", tuned)):
            empty = next((key for grid in grids for key, values in grid.items() if not values), None)
            if empty is not None:
                raise ConfigError(f"Each setting {what} needs a value or more; {empty} has none.")
        blind = {entry.name for entry in self.data if entry.dev == "none"}
        if self.keep == "best" and blind:
            raise ConfigError(
                f'keep = "best" is chosen on dev, and {min(blind)} has dev = "none". Give it a dev set, or keep "all" '
                'or "none".'
            )
        unselected = next((v for v in variants if v.tune and blind & set(v.data)), None)
        if unselected is not None:
            raise ConfigError(
                f"What is tuned is chosen on dev; {unselected.name} is run on {min(blind & set(unselected.data))}, "
                'which has dev = "none".'
            )

    @property
    def reference(self) -> str:
        """What the others are compared with: as the file says, else the first variant."""
        return self.against or self.variants()[0].name

    def sources(self) -> list[str]:
        """Return every source of data that the file names."""
        return [source for entry in self.data for source in entry.sources()]

    def starts(self) -> list[Start]:
        """Return each start that is evaluated untrained: one for all variants that begin from the same model."""
        variants = [tried for variant in self.variants() for tried in variant.tried()]
        # What all variants start from need not be named.
        shared = [key for key in STARTING if len({repr(variant.settings.get(key)) for variant in variants}) == 1]
        groups: dict[str, tuple[dict[str, Any], list[Variant]]] = {}
        for variant in variants:
            start_settings = {key: variant.settings[key] for key in STARTING if key in variant.settings}
            # By repr, as settings may be lists, which cannot be hashed.
            groups.setdefault(repr(start_settings), (start_settings, []))[1].append(variant)
        whitenings: tuple[Untrained, ...] = ()
        if isinstance(self.start, tuple):
            whitenings = self.start
        elif self.start:
            whitenings = ("none",)
        return [
            Start(
                name=", ".join([STARTS[whitening], *_each(start_settings, shared)]),
                standardize=whitening,
                settings=start_settings,
                variants=tuple(variants),
            )
            for whitening, (start_settings, variants) in product(whitenings, groups.values())
        ]

    def variants(self) -> list[Variant]:
        """Return every variant: the cases in order, each with every combination of the grid."""
        dataset_names = tuple(entry.name for entry in self.data)
        all_variants = []
        # Without cases, an empty one stands for the base.
        for case in self.case or ({},):
            settings = {key: value for key, value in case.items() if key not in ("name", "data", "tune")}
            dataset_choice = case.get("data", dataset_names)
            if isinstance(dataset_choice, list | tuple):
                data = tuple(dataset_choice)
            else:
                data = (dataset_choice,)
            if not data:
                raise ConfigError("A case is run on one data set of the sweep or more; received data = [].")
            strange = next((name for name in data if name not in dataset_names), None)
            if strange is not None:
                raise ConfigError(
                    f"A case is run on data sets of the sweep, {', '.join(dataset_names)}; received {strange!r}."
                )
            for combination in _combinations(self.grid):
                words = str(case["name"]) if "name" in case else _words(settings)
                name = ", ".join(filter(None, (words, _words(combination)))) or "base"
                tune = dict(case.get("tune", self.tune))
                all_variants.append(Variant(name=name, settings={**settings, **combination}, data=data, tune=tune))
        return all_variants


def _combinations(grid: Mapping[str, list[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(grid, values, strict=True)) for values in product(*grid.values())]


STARTS: dict[Untrained, str] = {"none": "start", "mean": "start minus its mean", "whiten": "start whitened"}
"""Names of the untrained start, by how it is standardized on the training texts."""


def _words(settings: Mapping[str, Any]) -> str:
    return ", ".join(_each(settings))


def _each(settings: Mapping[str, Any], but: Collection[str] = ()) -> list[str]:
    return [_word(key, value) for key, value in settings.items() if key not in but]


def _word(key: str, value: Any) -> str:
    if key in ("loss", METHOD):
        return str(value)
    return f"{key} {str(value).lower() if isinstance(value, bool) else value}"


def read_sweep(path: str | Path, values: Mapping[str, str]) -> SweepFile:
    """Read the file of a sweep.

    ``values`` is what stands for each ``${NAME}`` in its texts.
    """
    content = read_toml(Path(path))
    used: set[str] = set()
    try:
        filled = _filled(content, values, used)
        # A misspelt placeholder would leave the file's own value without a word.
        unused = sorted(set(values) - used)
        if unused:
            raise ConfigError(f"`set` gives a value to a placeholder of the file; {path} has no ${{{unused[0]}}}.")
        return _bound(filled, path)
    except RecursionError as error:
        raise ConfigError(f"{path} is no sweep: it is nested too deep.") from error


def _bound(content: Mapping[str, Any], path: str | Path) -> SweepFile:
    try:
        return SweepFile(**content)
    except ValidationError as error:
        raise as_config_error(error, f"{path}: ") from error
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from error


def _filled(value: Any, values: Mapping[str, str], used: set[str]) -> Any:
    """Return ``value`` with every placeholder in its texts replaced."""
    if isinstance(value, dict):
        return {key: _filled(inner, values, used) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, values, used) for inner in value]
    if not isinstance(value, str):
        return value
    names = set(_PLACE.findall(value))
    missing = sorted(names - set(values))
    if missing:
        raise ConfigError(f"{value!r} needs a value for {missing[0]}. Give it as: `set` {missing[0]}=...")
    # In place, as the caller asks which names were used.
    used |= names
    return _PLACE.sub(lambda match: values[match[1]], value)
