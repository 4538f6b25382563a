"""Commands made from functions: a command has the parameters, defaults and texts of the function of its name.

A command declares what only a terminal has; its ``**options`` stand for all other parameters of the function::

    @command_of(duplicates.dedup)
    def dedup(source: FileOrInput, /, *, output: FileOrOutput = "-", json: Json = False, **options: Any) -> None:
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import is_dataclass
from functools import reduce, wraps
from operator import or_
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from cyclopts import Group, Parameter

from samesense.api.data import read
from samesense.api.library_function import parameters_of
from samesense.cli.docstrings import arguments_of, for_terminal, paragraphs_of, texts_of
from samesense.data.rows.table_options import OPTIONS, TableOptions, table_options
from samesense.urls import Name

Command = Callable[..., None]
Function = Callable[..., Any]

TABLES = Group("How .tsv, .csv and text files are read")

NOTES: dict[str, dict[str, Any]] = {
    "output": {"name": ["--output", "-o"]},
    "suites": {"name": "--suite"},
    "delimiter": {"allow_leading_hyphen": True},
}
"""What a terminal adds to the flag of a parameter of this name."""


def command_of(function: Function, *, without: Collection[str] = ()) -> Callable[[Command], Command]:
    """Decorate a command so that its ``**options`` become the parameters of a function, less those it declares itself.

    A parameter taken over has the default of the function, and the type that a word on a command line can have. Its
    text, and that of a declared parameter that the command does not describe, is the function's. The help begins with
    the function's first paragraph, then come the command's own paragraphs, and the function's other ones.

    Flags that are required come first, then those of the terminal, then those of the function; switches of the terminal
    are the last. A command of a function that reads tables has the flags of :func:`reads_tables`.

    Args:
        function: the function that the command calls.
        without: parameters of the function that a terminal does not have.
    """

    def decorate(command: Command) -> Command:
        parameters = parameters_of(function)
        declared = parameters_of(command)
        shared = {name: as_flag(value) for name, value in parameters.items() if name not in {*without, *OPTIONS}}
        every = _in_order(declared, shared)
        flags = _flag_names(every)
        texts = {name: for_terminal(text, flags) for name, text in texts_of(function).items()}
        described = [_described(parameter, texts | arguments_of(command)) for parameter in every]
        first, *others = [for_terminal(paragraph, flags) for paragraph in paragraphs_of(function)]
        help_text = "\n\n".join([first, *paragraphs_of(command), *others])
        run = _with_signature(command, described, help_text)
        if set(OPTIONS) <= parameters.keys():
            return reads_tables(run)
        return run

    return decorate


def reads_tables(command: Command) -> Command:
    """Decorate a command to read all its files by the flags for tables of text, which it does not receive itself."""
    parameters = parameters_of(read)
    texts = texts_of(read)
    flags = [as_flag(parameters[name]) for name in OPTIONS]
    described = [_described(flag, {flag.name: for_terminal(texts[flag.name], {})}, group=TABLES) for flag in flags]

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        with table_options(TableOptions(**{name: kwargs.pop(name) for name in OPTIONS if name in kwargs})):
            command(*args, **kwargs)

    own = [_described(parameter, arguments_of(command)) for parameter in parameters_of(command).values()]
    return _with_signature(run, [*own, *described], "\n\n".join(paragraphs_of(command)))


def as_flag(parameter: inspect.Parameter) -> inspect.Parameter:
    """Return a parameter of a function as one of a command, given by a flag, with the type of a word on its line."""
    kind = _word_type(parameter.annotation)
    note = {**NOTES.get(parameter.name, {})}
    if parameter.default is not True:
        note["negative"] = ""  # no --no-fast beside --fast, and no --empty-texts beside --texts
    if kind == list[Name]:
        note["consume_multiple"] = True
    if is_dataclass(kind):
        note["name"] = "*"  # each field is a flag
    optional = kind | None if parameter.default is None else kind
    return parameter.replace(annotation=Annotated[optional, Parameter(**note)], kind=inspect.Parameter.KEYWORD_ONLY)


def _word_type(annotation: Any) -> Any:
    """Return the type of a word, or of several, that stands for a value of a type; it is never ``None``.

    Data and models, which are ``Any`` to a function, are named by a word, and a list of them by several.
    """
    kinds = [annotation]
    if get_origin(annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(annotation) if kind is not NoneType]
    if str in kinds and Path in kinds:
        return Path
    if str in kinds:
        return str
    if any(get_origin(kind) is Sequence for kind in kinds):
        return list[Name]
    if Any in kinds:
        return str
    return reduce(or_, kinds)


def _in_order(
    declared: Mapping[str, inspect.Parameter], shared: Mapping[str, inspect.Parameter]
) -> list[inspect.Parameter]:
    """Return the parameters of a command and of its function in the order in which help lists them."""
    positional = [parameter for parameter in declared.values() if parameter.kind is inspect.Parameter.POSITIONAL_ONLY]
    added = [parameter for name, parameter in declared.items() if name not in shared and parameter not in positional]
    switches = [parameter for parameter in added if _is_switch(parameter)]
    values = [parameter for parameter in added if not _is_switch(parameter)]
    own = [declared.get(name, parameter) for name, parameter in shared.items()]
    flags = [*values, *(parameter for parameter in own if parameter not in positional), *switches]
    # sorted is stable: required flags come first, and the others keep their order.
    return [*positional, *sorted(flags, key=lambda flag: flag.default is not inspect.Parameter.empty)]


def _is_switch(parameter: inspect.Parameter) -> bool:
    kind = parameter.annotation
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    return kind is bool


def _flag_names(parameters: Iterable[inspect.Parameter]) -> dict[str, str]:
    """Return what help calls each parameter: ``--min-precision``, or ``SOURCE`` where it has no flag."""
    words = {}
    for parameter in parameters:
        words[parameter.name] = f"--{parameter.name.replace('_', '-')}"
        if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            words[parameter.name] = parameter.name.upper()
    return words


def _described(parameter: inspect.Parameter, texts: Mapping[str, str], **note: Any) -> inspect.Parameter:
    notes = [extra for extra in getattr(parameter.annotation, "__metadata__", ()) if isinstance(extra, Parameter)]
    if parameter.name in texts and not any(extra.help for extra in notes):
        note["help"] = texts[parameter.name]
    if parameter.default == ():
        note["show_default"] = False
    return parameter.replace(annotation=Annotated[parameter.annotation, Parameter(**note)])


def _with_signature(command: Command, parameters: Iterable[inspect.Parameter], help_text: str) -> Command:
    """Return a command with this signature and help; defaults are passed to the command too."""
    signature = inspect.Signature([*parameters])

    @wraps(command)
    def run(*args: Any, **kwargs: Any) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        command(*bound.args, **bound.kwargs)

    run.__signature__ = signature  # type: ignore[attr-defined]  # inspect reads it
    # wraps copied those of the command, which has **options.
    run.__annotations__ = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    run.__doc__ = help_text
    return run
