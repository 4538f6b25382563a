"""From the file of a sweep to its cells: every run with its settings and data, checked before the first begins."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from pathlib import Path
from typing import Any

from samesense.errors import ConfigError, DataError
from samesense.hashes import json_hash
from samesense.recipes.methods import Method, method_named
from samesense.recipes.settings import EncoderSettings
from samesense.recipes.sweep.data_entry import DataEntry
from samesense.recipes.sweep.file import LAYERS, METHOD, Start, SweepFile, Variant
from samesense.recipes.sweep.identity import deciding, fingerprint_of
from samesense.recipes.sweep.splits import Splits, how_of, read_splits

LONGEST = 80
"""Characters of a cell's name in that of its folder: file systems take 255 bytes, and a character may have three."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One run of a sweep."""

    variant: str  # name of its settings
    dataset: str  # name of its data entry
    seed: int | None  # of the run; None for the start model, which is not trained
    method: Method  # by which it is trained
    settings: EncoderSettings  # of the method
    reading: str  # with the dataset, tells which :class:`Splits` are its data
    layers: int | None  # of the start model that are kept; None for all
    overrides: dict[str, Any]  # what the file set for it
    identity: dict[str, Any]  # everything that decides its figures
    tried_for: str | None = None  # the variant for whose sake it is tried; None for one that counts
    tried: dict[str, Any] = field(default_factory=dict)  # the settings that are tuned by it

    @property
    def key(self) -> str:
        """Fingerprint of the identity."""
        return json_hash(self.identity)[:10]

    @property
    def name(self) -> str:
        """Return the name for messages."""
        return f"{self.dataset}, {self.variant}" + ("" if self.seed is None else f", seed {self.seed}")

    def folder(self, output: Path) -> Path:
        """Return its run folder; one of the same identity keeps the name that it was given first."""
        runs = output / "runs"
        existing = sorted(runs.glob(f"*-{self.key}"))
        if existing:
            return existing[0]
        return runs / f"{slug(self.name)[:LONGEST]}-{self.key}"


Choices = Mapping[tuple[str, str], dict[str, Any]]
"""What was chosen for a variant on a data set."""


@dataclass(frozen=True)
class Plan:
    """All cells in the order in which they are run, and the data of each, by its dataset and reading."""

    file: SweepFile
    cells: list[Cell]
    splits: dict[tuple[str, str], Splits]
    starts: dict[str, str]  # what tells each model that is named from others, once that is known
    tuning: list[Cell]  # run first; of each variant that is tuned, the best on dev says how its cells are run
    chosen: Choices  # what was chosen so
    warnings: list[str]  # what is to be known of the data
    # why a variant cannot be trained on a data set, by the names of both; it has no cells
    skipped: dict[tuple[str, str], str] = field(default_factory=dict)

    @property
    def every(self) -> list[Cell]:
        """Each cell once, those that are tried first."""
        return list({cell.key: cell for cell in [*self.tuning, *self.cells]}.values())

    def splits_of(self, cell: Cell) -> Splits:
        """Return the data of a cell."""
        return self.splits[cell.dataset, cell.reading]


def slug(text: str) -> str:
    """Return a name for files: letters, digits, dots and hyphens."""
    return re.sub(r"[^\w.]+", "-", text).strip("-")


def make_plan(file: SweepFile) -> Plan:
    """Read the data and bind the settings of every cell.

    The order is seed by seed, and data set by data set within a seed, so that an unfinished sweep compares like with
    like. Start points come first. Variants that are tuned have no cells before :func:`with_chosen`.
    """
    plan = Plan(file, [], {}, {}, [], {}, [])
    plan.cells.extend(_cells(plan))
    plan.tuning.extend(_tuning(plan))
    _leave_out_untrainable(plan)
    _check_distinct([*plan.cells, *plan.tuning])
    entries = {entry.name: entry for entry in file.data}
    warnings = (splits.warnings(entries[name]) for (name, _), splits in plan.splits.items())
    plan.warnings.extend(dict.fromkeys(chain.from_iterable(warnings)))  # several methods may read one entry
    return plan


def with_chosen(plan: Plan, chosen: Choices) -> Plan:
    """Return the plan with the cells of the variants that are tuned, for which something is chosen."""
    extended_plan = replace(plan, cells=[], chosen=chosen)
    extended_plan.cells.extend(_cells(extended_plan))
    return extended_plan


def _cells(plan: Plan) -> Iterator[Cell]:
    file = plan.file
    variants = plan.file.variants()
    for start, entry in product(file.starts(), file.data):
        if start_variants := [variant for variant in start.variants if entry.name in variant.data]:
            yield _start(plan, entry, start, start_variants)
    for seed, entry, variant in product(file.seeds, file.data, variants):
        choice: Mapping[str, Any] | None = {}
        if variant.tune:
            choice = plan.chosen.get((variant.name, entry.name))
        skipped = (variant.name, entry.name) in plan.skipped
        if entry.name in variant.data and choice is not None and not skipped:
            tuned_variant = variant.model_copy(update={"settings": {**variant.settings, **choice}})
            yield _cell(plan, entry, tuned_variant, seed)


def _tuning(plan: Plan) -> Iterator[Cell]:
    """Yield the cells by which variants are tuned, with the first seed."""
    for entry, variant in product(plan.file.data, plan.file.variants()):
        if entry.name in variant.data and variant.tune:
            for tried in variant.tried():
                tuned_settings = {key: tried.settings[key] for key in variant.tune}
                cell = _cell(plan, entry, tried, plan.file.seeds[0])
                yield replace(cell, tried_for=variant.name, tried=tuned_settings)


def _check_distinct(cells: Sequence[Cell]) -> None:
    keys = [cell.key for cell in cells]
    for cell in cells:
        if keys.count(cell.key) > 1:
            twins = [duplicate.name for duplicate in cells if duplicate.key == cell.key]
            raise ConfigError(f"Each run must differ from the others; these are the same run: {'; '.join(twins)}.")


def _cell(plan: Plan, entry: DataEntry, variant: Variant, seed: int) -> Cell:
    # The more special wins: all runs, then the data set, then the variant.
    overrides = {**plan.file.base, **entry.settings, **variant.settings}
    bound = _bind(plan, entry, variant.name, {**overrides, "seed": seed})
    settings = bound.settings
    splits = plan.splits[entry.name, bound.reading]
    identity = {
        "settings": deciding(settings, plan.starts),
        "start": fingerprint_of(settings.model, plan.starts),
        "layers": bound.layers,
        "test_precision": plan.file.test_precision,
        **splits.identity(),
    }
    # Unnamed, as in sweeps from before there were other methods, whose folders stay valid.
    if bound.method.name != "cosent":
        identity[METHOD] = bound.method.name
    if entry.label_range is not None:
        identity["label_range"] = list(entry.label_range)  # decides targets, and is no part of the data's fingerprint
    return Cell(
        variant=variant.name, dataset=entry.name, seed=seed, overrides=overrides, identity=identity, **vars(bound)
    )


def _start(plan: Plan, entry: DataEntry, start: Start, variants: Sequence[Variant]) -> Cell:
    overrides = {**plan.file.base, **entry.settings, **start.settings}
    methods = list(dict.fromkeys(variant.settings.get(METHOD, overrides.get(METHOD, "cosent")) for variant in variants))
    # the first method's data can be read
    bound = _bind(plan, entry, start.name, {**overrides, METHOD: methods[0], "standardize": start.standardize})
    settings = bound.settings
    splits = plan.splits[entry.name, bound.reading]
    _check_pooling(f"{entry.name}, {start.name}", settings, list(map(method_named, methods)))
    if getattr(settings, "encoder", "bi") == "cross":
        raise ConfigError(
            "The start model of a cross-encoder has a random head, and nothing to evaluate. Leave out start = true."
        )
    identity = {
        METHOD: bound.method.name,  # whose pooling a bare transformer takes
        "settings": settings.model_dump(include={"pooling", "first", "max_seq_length", "prompt"}),
        "start": fingerprint_of(settings.model, plan.starts),
        "layers": bound.layers,
        "test_precision": plan.file.test_precision,
        "tests": splits.identity()["tests"],
        "dev": splits.identity()["dev"],
    }
    if start.standardize != "none":
        overrides = {**overrides, "standardize": start.standardize}
        # Fitted on the training texts, which then decide the figures too.
        identity = {**identity, "standardize": start.standardize, "train": splits.train.sha256}
    return Cell(
        variant=start.name, dataset=entry.name, seed=None, overrides=overrides, identity=identity, **vars(bound)
    )


def _check_pooling(name: str, settings: EncoderSettings, methods: Sequence[Method]) -> None:
    """Raise ConfigError if a start without a pooling of its own is another one for each of the methods."""
    poolings = list(dict.fromkeys(method.settings.bare_pooling for method in methods))
    if len(poolings) == 1 or settings.pooling is not None:
        return
    # Loads torch, and only a file that says so needs to look at the start.
    from samesense.encoder.assembly.build import is_bare

    if is_bare(settings.model):
        raise ConfigError(
            f"{name}: {' and '.join(method.name for method in methods)} start from {settings.model} with pooling "
            f"{' and '.join(poolings)}. Give pooling in [base], or in each case."
        )


@dataclass(frozen=True)
class _Bound:
    """What the settings of a cell come to."""

    method: Method
    settings: EncoderSettings
    reading: str
    layers: int | None


def _bind(plan: Plan, entry: DataEntry, variant: str, overrides: Mapping[str, Any]) -> _Bound:
    """Bind the settings of a cell, and read its data unless another cell has had them read."""
    method_settings = {key: value for key, value in overrides.items() if key not in (LAYERS, METHOD)}
    layers = overrides.get(LAYERS)
    method = method_named(overrides.get(METHOD, "cosent"))
    method_settings = method.own_settings(method_settings, how_of(entry))[0]

    def read(settings: EncoderSettings | None = None) -> Splits:
        key = entry.name, _reading(method, settings)
        if key not in plan.splits:
            plan.splits[key] = read_splits(entry, plan.file.rows_seed, method, settings)
        return plan.splits[key]

    if layers is not None and (not isinstance(layers, int) or layers < 1):
        raise ConfigError(f"{entry.name}, {variant}: layers is a whole number from 1 on; received {layers!r}.")
    try:
        settings = method.choose(plan.file.config, method_settings, lambda: read().train)[1]
    except ConfigError as error:
        raise ConfigError(f"{entry.name}, {variant}: {error}") from error
    for name in ("guard", "learning_curve"):
        if getattr(settings, name, None):
            raise ConfigError(f"{entry.name}, {variant}: `{name}` is of a single run's report. Leave it out.")
    # Reads the data also where the choice of settings did not need them.
    read(settings)
    return _Bound(method, settings, _reading(method, settings), layers)


def _reading(method: Method, settings: EncoderSettings | None) -> str:
    return json.dumps([method.name, *(getattr(settings, name, None) for name in method.reading)])


def _leave_out_untrainable(plan: Plan) -> None:
    """Take the cells out of a plan that cannot be trained on their data, where the file says so.

    Raises:
        DataError: which names every such variant and data set, and the option that settles it, unless the file has
            ``untrainable = "skip"``; also if no other cell is left.
    """
    problems = _training_problems(plan)
    if not problems:
        return
    plan.skipped.update({key: str(error) for key, error in problems.items()})
    trained = [cell for cell in [*plan.cells, *plan.tuning] if cell.seed is not None and not _is_skipped(plan, cell)]
    if plan.file.untrainable == "refuse" or not trained:
        (variant, dataset), first = next(iter(problems.items()))
        pairs = list(problems)[1:]
        alike = "".join(f" The same holds for {name_of_set}, {name}." for name, name_of_set in pairs)
        raise DataError(
            f"{dataset}, {variant}: {first}{alike} To leave a data set out for some settings, write a case with "
            'data = [...]; to run the others without what cannot be trained, write untrainable = "skip".'
        ) from first
    # In place, as the plan is frozen.
    plan.cells[:] = [cell for cell in plan.cells if not _is_skipped(plan, cell)]
    plan.tuning[:] = [cell for cell in plan.tuning if not _is_skipped(plan, cell)]


def _training_problems(plan: Plan) -> dict[tuple[str, str], DataError]:
    """Return why variants cannot be trained on data sets; all seeds have the same labels, so the first one tells."""
    problems: dict[tuple[str, str], DataError] = {}
    for cell in [*plan.cells, *plan.tuning]:
        if cell.seed != plan.file.seeds[0]:
            continue
        try:
            cell.method.check(plan.splits_of(cell).train, cell.settings)
        except DataError as error:
            problems.setdefault((cell.tried_for or cell.variant, cell.dataset), error)
    return problems


def _is_skipped(plan: Plan, cell: Cell) -> bool:
    return (cell.tried_for or cell.variant, cell.dataset) in plan.skipped
