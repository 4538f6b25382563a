"""What all functions of the library that are commands too have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cache, wraps
from pathlib import Path
from types import NoneType, SimpleNamespace, UnionType
from typing import Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

from samesense.choices import check_choice, check_output_name
from samesense.data.rows.table_options import OPTIONS, reads_tables
from samesense.execution.unread import logs_unread

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def library_function(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Decorate a function so that it refuses wrong words first, reads its tables by their options, and shows progress.

    An argument whose type is a ``Literal`` is one of its words, and an ``output`` or the like that is needed is a name.
    At the end it is logged which texts a model did not read.
    """

    @logs_unread
    @reads_tables
    @wraps(function)
    def run(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        types = _types(function)
        for name, value in {**dict(zip(types, args, strict=False)), **kwargs}.items():
            _check(name, value, types.get(name))
        return function(*args, **kwargs)

    return run


_EXAMPLES = {"output": "runs/mine", "folder": "texts.index", "file": "sweep.toml"}
"""Arguments that name files and folders, with an example for messages."""


@cache
def _types(function: Callable[..., Any]) -> Mapping[str, Any]:
    """Return the types of a function's parameters, ``self`` of a method among them, in their order."""
    named = parameters_of(function)
    names = inspect.signature(function).parameters
    return {name: named[name].annotation if name in named else Any for name in names}


def _check(name: str, value: object, annotation: Any) -> None:
    """Raise ConfigError for an argument that its type does not allow, as far as types are looked at here."""
    if name in _EXAMPLES and annotation == str | Path:
        check_output_name(value, name, _EXAMPLES[name])
    kinds = get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)
    choices = [kind for kind in kinds if get_origin(kind) is Literal]
    # The options of tables are checked where they are put together.
    if choices and not {*kinds} - {*choices, NoneType} and name not in OPTIONS:
        check_choice(name, value, choices[0], optional=NoneType in kinds)


def parameters_of(function: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """Return the named parameters of a function by name, with types in place of strings.

    The type that the function returns is not resolved: it may be one that is imported for type checkers only.
    """
    # Types are looked up in the module of the function, not in that of its decorators.
    plain = inspect.unwrap(function, stop=lambda wrapper: hasattr(wrapper, "__signature__"))
    annotations = {name: text for name, text in plain.__annotations__.items() if name != "return"}
    hints = get_type_hints(SimpleNamespace(__annotations__=annotations), plain.__globals__, include_extras=True)
    return {
        name: parameter.replace(annotation=hints.get(name, Any))
        for name, parameter in inspect.signature(plain).parameters.items()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD and name != "self"
    }
