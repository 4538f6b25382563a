"""Settings of recipes as flags of a command: each stands in the help once, with what it is for every method."""

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
"""Types of settings that a flag gives as words, which the setting reads: a table as key=value, numbers with commas."""


def flags(
    settings: Mapping[str, type[BaseModel]], without: Collection[str] = (), shown: Collection[str] | None = None
) -> type[BaseModel]:
    """Return the settings of all methods with nothing required and nothing set, so that only given flags count.

    Args:
        settings: by the name of the method. What every method has stands in the group Settings, the rest in groups that
            name the methods.
        without: settings that are flags of the command itself.
        shown: settings that the help shows; by default all.
    """
    every = dict.fromkeys(name for one in settings.values() for name in one.model_fields)
    names = [name for name in every if name not in without]
    shared = [name for name in names if all(name in one.model_fields for one in settings.values())]
    fields = {
        name: _flag(name, settings, show=shown is None or name in shown)
        for name in [*shared, *(name for name in names if name not in shared)]
    }
    config = ConfigDict(protected_namespaces=(), extra="forbid")
    one_line: Any = model_validator(mode="wrap")(_in_one_line)
    return create_model("Flags", __config__=config, __validators__={"one_line": one_line}, **fields)


def _flag(name: str, settings: Mapping[str, type[BaseModel]], *, show: bool) -> Any:
    found = {method: one.model_fields[name] for method, one in settings.items() if name in one.model_fields}
    annotation = _joined([AS_WORDS.get(field.annotation, field.annotation) for field in found.values()])
    shown = _described({method: str(field.description) for method, field in found.items()})
    shown += _defaults({method: field.default for method, field in found.items()})
    title = "Settings" if len(found) == len(settings) else f"Settings of {' and '.join(found)}"
    order = len(settings) - len(found)
    group = Group(title, sort_key=(order, title))
    parameter = Parameter(show_default=False, help=shown, group=group, show=show, negative_iterable="")
    return Annotated[annotation | None, parameter], Field(default=None)


def _joined(annotations: list[Any]) -> Any:
    """Return what takes the values of all: of choices, each one once."""
    if all(get_origin(one) is Literal for one in annotations):
        return Literal[tuple(dict.fromkeys(value for one in annotations for value in get_args(one)))]
    return reduce(or_, annotations)


def _described(texts: Mapping[str, str]) -> str:
    """Return what a flag means for most methods, and for which it means something else."""
    methods: dict[str, list[str]] = {}
    for method, text in texts.items():
        methods.setdefault(text, []).append(method)
    common = max(methods, key=lambda text: len(methods[text]))
    others = [f"{', '.join(named)}: {text}" for text, named in methods.items() if text != common]
    return "; ".join([common, *others])


def _defaults(values: Mapping[str, Any]) -> str:
    """Return what holds where the flag is not given; a default that only the description can say is left to it."""
    told = {method: _word(value) for method, value in values.items() if value is not None}
    if not told:
        return ""
    if len(set(told.values())) == 1:
        return f" [{next(iter(told.values()))}]"
    return f" [{', '.join(f'{method} {word}' for method, word in told.items())}]"


def _word(value: Any) -> str:
    return "none" if value == () else str(value)


def _in_one_line(cls: Any, values: Any, check: Any) -> Any:
    """Check flags as pydantic does, and say what is wrong as everywhere else."""
    try:
        return check(values)
    except ValidationError as error:
        raise as_config_error(error) from error
