"""From the file of a sweep to its cells: every run with its settings and data, checked before the first begins."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from samesense.data import PairData
from samesense.errors import ConfigError, DataError
from samesense.recipes.settings import CosentSettings, choose
from samesense.recipes.sweep.file import LAYERS, START, DataEntry, SweepFile, Variant
from samesense.recipes.sweep.parts import Parts, read_parts


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run of a sweep.

    Attributes:
        variant: name of its settings.
        dataset: name of its data entry.
        seed: of the run; ``None`` for the untouched start point, which is not trained.
        settings: of the recipe.
        layers: of the start model that are kept; ``None`` for all.
        given: what the file set for it.
        identity: everything that decides its figures.
    """

    variant: str
    dataset: str
    seed: int | None
    settings: CosentSettings
    layers: int | None
    given: dict[str, Any]
    identity: dict[str, Any]

    @property
    def key(self) -> str:
        """Fingerprint of the identity."""
        return hashlib.sha256(json.dumps(self.identity, sort_keys=True).encode()).hexdigest()[:10]

    @property
    def name(self) -> str:
        """Name for people."""
        return f"{self.dataset}, {self.variant}" + ("" if self.seed is None else f", seed {self.seed}")

    def folder(self, output: Path) -> Path:
        """Return its run folder; one of the same identity keeps the name that it was given first."""
        runs = output / "runs"
        before = sorted(runs.glob(f"*-{self.key}"))
        return before[0] if before else runs / f"{slug(self.name)}-{self.key}"


@dataclass(frozen=True)
class Plan:
    """All cells in the order in which they are run, and the data of each entry."""

    file: SweepFile
    cells: list[Cell]
    parts: dict[str, Parts]


def slug(text: str) -> str:
    """Return a name for files: letters, digits, dots and hyphens."""
    return re.sub(r"[^\w.]+", "-", text).strip("-")


def make_plan(file: SweepFile) -> Plan:
    """Read the data and bind the settings of every cell.

    The order is seed by seed, and data set by data set within a seed, so that an unfinished sweep compares like with
    like. Start points come first.

    Raises:
        ConfigError, DataError, ModelError: if any cell could not be run.
    """
    parts = {entry.name: read_parts(entry, file.rows_seed) for entry in file.data}
    starts: dict[str, str] = {}
    cells = [_start(file, entry, parts[entry.name], starts) for entry in file.data] if file.start else []
    variants = file.variants()
    for seed in file.seeds:
        for entry in file.data:
            for variant in variants:
                if entry.name in variant.data:
                    cells.append(_cell(file, entry, variant, seed, parts[entry.name], starts))
                    if seed == file.seeds[0]:
                        _check_fits(cells[-1], parts[entry.name].train)
    keys = [cell.key for cell in cells]
    for cell in cells:
        if keys.count(cell.key) > 1:
            twins = [other.name for other in cells if other.key == cell.key]
            raise ConfigError(f"Each cell must differ from the others; these are the same run: {'; '.join(twins)}.")
    return Plan(file, cells, parts)


def _cell(file: SweepFile, entry: DataEntry, variant: Variant, seed: int, parts: Parts, starts: dict[str, str]) -> Cell:
    given = {**file.base, **entry.settings, **variant.settings}
    settings, layers = _bound(file, f"{entry.name}, {variant.name}", {**given, "seed": seed}, parts.train.kind)
    identity = {
        "settings": settings.model_dump(exclude_defaults=True, exclude={"model"}),
        "start": _fingerprint(settings.model, starts),
        "layers": layers,
        "judging": file.judging,
        **parts.identity(),
    }
    return Cell(
        variant=variant.name,
        dataset=entry.name,
        seed=seed,
        settings=settings,
        layers=layers,
        given=given,
        identity=identity,
    )


def _start(file: SweepFile, entry: DataEntry, parts: Parts, starts: dict[str, str]) -> Cell:
    given = {**file.base, **entry.settings}
    settings, layers = _bound(file, f"{entry.name}, {START}", given, parts.train.kind)
    if settings.encoder == "cross":
        raise ConfigError(
            "The start point of a cross-encoder has a random head, and nothing to judge. Leave out start = true."
        )
    identity = {
        "settings": settings.model_dump(include={"pooling", "first", "max_seq_length"}),
        "start": _fingerprint(settings.model, starts),
        "layers": layers,
        "judging": file.judging,
        "tests": parts.identity()["tests"],
        "dev": parts.identity()["dev"],
    }
    return Cell(
        variant=START, dataset=entry.name, seed=None, settings=settings, layers=layers, given=given, identity=identity
    )


def _bound(file: SweepFile, where: str, given: Mapping[str, Any], kind: str) -> tuple[CosentSettings, int | None]:
    own = {key: value for key, value in given.items() if key != LAYERS}
    layers = given.get(LAYERS)
    if layers is not None and (not isinstance(layers, int) or layers < 1):
        raise ConfigError(f"{where}: layers is a whole number from 1 on; received {layers!r}.")
    try:
        return choose(file.config, own, kind=kind)[1], layers
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from error


def _check_fits(cell: Cell, train: PairData) -> None:
    """Raise if the labels do not fit the loss."""
    if cell.settings.encoder == "cross":
        from samesense.recipes.cosent_cross import prepare
    try:
        if cell.settings.encoder == "cross":
            prepare(train, cell.settings)
        else:
            cell.settings.targets(train)
    except DataError as error:
        raise DataError(
            f"{cell.name}: {error} To leave this data set out for these settings, write a case with data = [...]."
        ) from error


def _fingerprint(model: str, known: dict[str, str]) -> str:
    """Return what tells a start model from others: a hash of its files, or its name on the hub."""
    if model not in known:
        from samesense.encoder.build import resolve

        folder = Path(resolve(model))
        known[model] = _hash_of_files(folder) if folder.is_dir() else model
    return known[model]


def _hash_of_files(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.suffix != ".md" and not path.name.startswith("."):
            with path.open("rb") as stream:
                inside = hashlib.file_digest(stream, "sha256").hexdigest()
            digest.update(f"{path.relative_to(folder).as_posix()} {inside}\n".encode())
    return digest.hexdigest()


def with_start(cell: Cell, model: str) -> Cell:
    """Return the cell with another folder for its start model."""
    return replace(cell, settings=cell.settings.model_copy(update={"model": model}))
