"""From sources of several kinds to the parts of a mixture, each read for its method and with settings of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from samesense.data.detected_kind import DataKind
from samesense.data.pairs.data import PairData, concat
from samesense.data.rows.sources import Source
from samesense.data.tuples.convert import tuples_of_pairs
from samesense.errors import ConfigError
from samesense.recipes.methods import METHODS, Method
from samesense.recipes.mixed.data import Mixture, Part
from samesense.recipes.mixed.settings import MixedSettings
from samesense.recipes.planning.fitting import DetectedSource, form_of
from samesense.recipes.planning.pair_loss import choose_nli_loss
from samesense.recipes.reading import Reading
from samesense.recipes.settings import SettingsFile, bind, read_settings

NAMES: Mapping[DataKind, str] = {
    "tuples": "anchors",
    "classes": "classes",
    "texts": "sentences",
    "documents": "sections",
}
"""What parts are called, but for labelled pairs, which are called as their labels are."""

OF_ALL = ("batch_size", "max_seq_length", "mini_batch_num_tokens", "seed")
"""Settings of the run that its parts take over where they are given."""

OF_RUN = {*MixedSettings.model_fields} - {*OF_ALL, "parts"}
"""Settings that hold for the whole run: there is one model, one optimiser and one schedule."""


def read_mixture(
    sources: Sequence[DetectedSource], config: str, options: Mapping[str, Any], reading: Reading
) -> tuple[str, MixedSettings, Mixture]:
    """Read the sources and bind the settings of the run and of each part; the name returned is for display.

    A setting that the run itself has not is one of every part whose method has it; a table of ``parts`` is one part's.

    Raises:
        ConfigError: if no part has a setting, there is no part of a name, a part has a setting of the run, or it needs
            an encoder of another kind.
        DataError: if a source cannot be read.
    """
    stated = dict(options)
    if config not in ("auto", "mixed"):
        stated = {**read_settings(config), **options}
    tables = {name: dict(table) for name, table in stated.pop("parts", {}).items()}
    of_run = {name: value for name, value in stated.items() if name in MixedSettings.model_fields}
    part_settings = {name: value for name, value in stated.items() if name not in of_run}
    groups = _group_sources(sources)
    methods = {name: _choose_method(group[0], part_settings) for name, group in groups.items()}
    _check_used(methods, part_settings, tables)
    overrides = {}
    for name, method in methods.items():
        known = {setting: value for setting, value in part_settings.items() if setting in method.settings.model_fields}
        overrides[name] = known | tables.get(name, {})
    shared = {name: value for name, value in of_run.items() if name in OF_ALL}
    components = [
        _read_part(name, methods[name], group, {**shared, **overrides[name]}, reading) for name, group in groups.items()
    ]
    largest = max(component.settings.batch_size for component in components)
    settings = bind(
        MixedSettings,
        read_settings("mixed"),
        SettingsFile(of_run, config),
        {"parts": overrides, "batch_size": largest},
    )
    shown_config = "mixed" if config == "auto" else config
    return shown_config, settings, Mixture(parts=tuple(components))


def _group_sources(sources: Sequence[DetectedSource]) -> dict[str, list[DetectedSource]]:
    """Return the sources by the name of their part, those that are trained on as one together."""
    groups: dict[tuple[Any, ...], list[DetectedSource]] = {}
    for item in sources:
        groups.setdefault(item.key, []).append(item)
    groups_by_name: dict[str, list[DetectedSource]] = {}
    for group in groups.values():
        first = group[0]
        name = NAMES.get(first.detected.kind, "pairs")
        if isinstance(first.source, PairData):
            name = first.source.kind
        # Labelled pairs of two scales are two parts of one name.
        duplicates = sum(existing_name.split("-")[0] == name for existing_name in groups_by_name)
        if duplicates:
            name = f"{name}-{duplicates + 1}"
        groups_by_name[name] = group
    return groups_by_name


def _choose_method(source: DetectedSource, part_settings: Mapping[str, Any]) -> Method:
    if source.detected.kind == "documents":
        return METHODS["sections"]  # contexts are more than one training
    if source.detected.kind == "texts" and part_settings.get("teacher"):
        return METHODS["rankcse"]
    return METHODS[source.detected.info.method]


def _check_used(methods: Mapping[str, Method], part_settings: Mapping[str, Any], tables: Mapping[str, Any]) -> None:
    """Raise ConfigError for a setting that no part has, a part that is not there, and a part's setting of the run."""
    descriptions = ", ".join(f"{name} (method {method.name})" for name, method in methods.items())
    for name in part_settings:
        if _owners(name, methods.values()):
            continue
        owners = _owners(name, METHODS.values())
        if not owners:
            bind(MixedSettings, {name: None})  # raises, and says which name is near
        raise ConfigError(
            f"{name} is a setting of method {' and '.join(owners)}; these data are {descriptions}. Leave it out."
        )
    unknown = next((name for name in tables if name not in methods), None)
    if unknown is not None:
        raise ConfigError(f"The tables of `parts` are those of the data, {descriptions}; received {unknown!r}.")
    for part_name, table in tables.items():
        for name in table:
            if name in OF_RUN:
                raise ConfigError(
                    f"`{name}` of part {part_name} is a setting of the whole run: set it outside `parts`."
                )
            if len(methods) > 1 and _changes_encoder(name, table[name]):
                raise ConfigError(
                    f"`{name}` of part {part_name} changes the encoder of every part; received {table[name]!r}. Set it "
                    "outside `parts`."
                )


def _owners(setting: str, methods: Iterable[Method]) -> list[str]:
    """Return the names of the methods that have a setting."""
    return [method.name for method in methods if setting in method.settings.model_fields]


def _changes_encoder(name: str, value: Any) -> bool:
    """Return whether a setting changes the one encoder itself, and not only what is learnt from a part."""
    return (name == "dropout" and value is not None) or (name, value) == ("head", "kept")


def _read_part(
    name: str, method: Method, group: Sequence[DetectedSource], overrides: Mapping[str, Any], reading: Reading
) -> Part:
    """Read the sources of a part, its settings deciding how."""
    sources: list[Source] = [item.source for item in group]
    data: Any = None
    if len(sources) == 1 and isinstance(sources[0], method.data):
        data = sources[0]
    if all(isinstance(source, PairData) for source in sources):
        data = concat(sources)
        if not isinstance(data, method.data):
            data = tuples_of_pairs(data)
    columns = reading.columns
    if not columns:
        columns = None
        # Texts of several sources are one part, whatever their columns are called.
        if name != "sentences":
            columns = group[0].detected.columns
    part_reading = replace(reading, columns=columns)
    moved, _ = method.own_settings({}, part_reading)  # what is left of it is for labelled pairs
    _, settings = method.choose("auto", {**moved, **overrides}, lambda: data, form_of(group[0].detected))
    settings = choose_nli_loss(settings, data, overrides)
    if getattr(settings, "encoder", "bi") != "bi":
        raise ConfigError(f"{name}: data of several kinds train one encoder of sentences; received encoder cross.")
    if data is None:
        data = method.read(sources, settings, Reading())
    return Part(
        name=name, method=method.name, prepare=method.prepare_inputs, data=data, settings=settings.for_data(data)
    )
