"""Settings of recipes as flags of a command: the help lists each once, with its meaning for every method."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, Literal, get_args, get_origin

from cyclopts import Group, Parameter
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model, model_validator

from samesense.recipes.settings import as_config_error

AS_WORDS: dict[Any, Any] = {
    dict[str, Any]: tuple[str, ...],
    tuple[int, ...]: tuple[str, ...],
    int | tuple[float, ...] | None: tuple[str, ...],
}
"""Types of settings that a flag passes as words and the setting parses: a table as key=value, numbers with commas."""


def flags(
    settings: Mapping[str, type[BaseModel]], without: Collection[str] = (), listed: Collection[str] | None = None
) -> type[BaseModel]:
    """Return a model of the settings of all methods, each optional and unset, so that only given flags count.

    Args:
        settings: settings of each method. Those of all methods are in the group Settings, others in groups that name
            their methods.
        without: settings that are flags of the command itself.
        listed: settings that the help lists; by default all.
    """
    every = dict.fromkeys(name for model in settings.values() for name in model.model_fields)
    names = [name for name in every if name not in without]
    shared = [name for name in names if all(name in model.model_fields for model in settings.values())]
    fields = {
        name: _flag(name, settings, show=listed is None or name in listed)
        for name in [*shared, *(name for name in names if name not in shared)]
    }
    config = ConfigDict(protected_namespaces=(), extra="forbid")
    # pydantic would report each wrong flag in several lines.
    one_line: Any = model_validator(mode="wrap")(_in_one_line)
    return create_model("Flags", __config__=config, __validators__={"one_line": one_line}, **fields)


def given_settings(settings: BaseModel | None) -> dict[str, Any]:
    """Return the settings that were given as flags."""
    if settings is None:
        return {}
    return settings.model_dump(exclude_none=True)


def _flag(name: str, settings: Mapping[str, type[BaseModel]], *, show: bool) -> Any:
    fields = {method: model.model_fields[name] for method, model in settings.items() if name in model.model_fields}
    annotation = _joined([AS_WORDS.get(field.annotation, field.annotation) for field in fields.values()])
    description = _described({method: str(field.description) for method, field in fields.items()})
    description += _defaults({method: field.default for method, field in fields.items()})
    title = f"Settings of {' and '.join(fields)}" if len(fields) != len(settings) else "Settings"
    # Groups of many methods come before groups of few.
    order = len(settings) - len(fields)
    group = Group(title, sort_key=(order, title))
    # negative_iterable: no --empty-NAME beside each flag of several values
    parameter = Parameter(show_default=False, help=description, group=group, show=show, negative_iterable="")
    return Annotated[annotation | None, parameter], Field(default=None)


def _joined(annotations: list[Any]) -> Any:
    """Return the union of the types; the union of choices has each choice once."""
    if all(get_origin(annotation) is Literal for annotation in annotations):
        return Literal[tuple(dict.fromkeys(value for annotation in annotations for value in get_args(annotation)))]
    return reduce(or_, annotations)


def _described(texts: Mapping[str, str]) -> str:
    """Return the description that most methods share, and those of the others."""
    methods: dict[str, list[str]] = {}
    for method, text in texts.items():
        methods.setdefault(text, []).append(method)
    # Most methods mean the same by a setting, so that the others are exceptions.
    common = max(methods, key=lambda text: len(methods[text]))
    exceptions = [f"{', '.join(names)}: {text}" for text, names in methods.items() if text != common]
    return "; ".join([common, *exceptions])


def _defaults(values: Mapping[str, Any]) -> str:
    """Return the defaults of a flag as the help shows them; ``None`` is left to the description."""
    words = {method: _word(value) for method, value in values.items() if value is not None}
    if not words:
        return ""
    if len(set(words.values())) == 1:
        return f" [{next(iter(words.values()))}]"
    return f" [{', '.join(f'{method} {word}' for method, word in words.items())}]"


def _word(value: Any) -> str:
    if value == ():
        return "none"
    return str(value)


def _in_one_line(cls: Any, values: Any, check: Any) -> Any:
    """Validate flags as pydantic does, and raise a ConfigError as everywhere else."""
    try:
        return check(values)
    except ValidationError as error:
        raise as_config_error(error) from error
