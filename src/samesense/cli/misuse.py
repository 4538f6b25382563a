"""What is wrong with a command line, in words: which rule, what was received, and the likely fix."""

from __future__ import annotations

import inspect
import shlex
from typing import Any, Literal, get_args, get_origin

from cyclopts import CycloptsError
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

OTHER_FLAGS = {
    "--lr": "--learning-rate",
    "--bs": "--batch-size",
    "--fp16": "--precision bfloat16",
    "--bf16": "--precision bfloat16",
    "--out": "--output",
}
"""Flags of other programs, and what they are called here."""

OTHER_COMMANDS = {
    "search": "index query", "query": "index query", "find": "index query", "eval": "evaluate", "test": "evaluate",
    "finetune": "train", "fine-tune": "train", "embed": "encode", "score": "similarity", "predict": "similarity",
    "deduplicate": "dedup", "benchmark": "compare", "check": "doctor",
}  # fmt: skip
"""Commands of other programs, and what they are called here."""

KINDS: dict[Any, str] = {int: "a whole number", float: "a number", type(None): ""}


def in_words(error: CycloptsError) -> str:
    """Return what was wrong for people, and where to read on."""
    command = " ".join(("samesense", *(error.command_chain or ())))
    return f"{_said(error, command)} See: {command} --help"


def _said(error: CycloptsError, command: str) -> str:
    said = ""
    if isinstance(error, UnusedCliTokensError):
        said = _too_many(error, command)
    elif isinstance(error, MissingArgumentError):
        said = _missing(error, command)
    elif isinstance(error, UnknownOptionError):
        said = _unknown_flag(error)
    elif isinstance(error, UnknownCommandError):
        said = _unknown_command(error, command)
    elif isinstance(error, CoercionError):
        said = _no_number(error)
    return said or str(error).strip()


def _too_many(error: UnusedCliTokensError, command: str) -> str:
    unused, given = list(error.unused_tokens or ()), list(error.root_input_tokens or ())
    takes = inspect.signature(error.target).parameters if error.target else {}
    if "data" in takes and "--data" not in given and set(unused) <= set(given):
        for one in unused:
            given.remove(one)
        return f'Data files come after --data, as in "{_line([*given, "--data", *unused])}".'
    return (
        f"{command} has no place for {', '.join(map(repr, unused))}. A text of several words stands in quotes, and "
        "options begin with --."
    )


def _missing(error: MissingArgumentError, command: str) -> str:
    if error.argument is None:
        return ""
    count, _ = error.argument.token_count()
    name = error.argument.name
    if error.keyword:
        needs = "a value" if count < 2 else f"{count} values"
        received = f"; received {len(error.tokens_so_far) % count}" if count > 1 else ""
        return f"{error.keyword} needs {needs} after it{received}."
    if name.startswith("-"):
        values = ["NAME"] * max(1, count)
        return f'{name} is missing. Add it, as in "{_line([*(error.root_input_tokens or ()), name, *values])}".'
    example = _example(error.target)
    return f"{command} needs {name.upper()}" + (f', as in "{example}".' if example else ".")


def _example(target: Any) -> str:
    """Return the example in the docstring of a command, its second paragraph."""
    parts = (inspect.getdoc(target) or "").split("\n\n")
    return parts[1] if len(parts) > 1 and parts[1].startswith("samesense ") and "\n" not in parts[1] else ""


def _unknown_flag(error: UnknownOptionError) -> str:
    flag = (error.token.keyword or error.token.value).partition("=")[0]
    if flag == "--device":
        return 'There is no --device here: a GPU is taken if there is one. For the CPU, set CUDA_VISIBLE_DEVICES="".'
    names = {name for argument in error.argument_collection for name in argument.names}
    given = list(error.root_input_tokens or ())
    if "--" in given and flag in [word.partition("=")[0] for word in given[given.index("--") :]]:
        return f"{flag} stands after --, behind which all words are texts or files. Put options before --."
    ours = OTHER_FLAGS.get(flag, "")
    if ours.partition(" ")[0] in names:
        return f"Unknown option: {flag}. Here it is {ours}."
    return f"Unknown option: {flag}." if f"Did you mean {flag}?" in str(error) else ""


def _unknown_command(error: UnknownCommandError, command: str) -> str:
    name = (error.unused_tokens or [""])[0]
    ours = OTHER_COMMANDS.get(name, "")
    if command == "samesense index" and ours.startswith("index "):
        ours = ours.removeprefix("index ")
    elif command != "samesense":
        ours = ""
    return f'Unknown command "{name}". Here it is: {command} {ours}.' if ours else ""


def _no_number(error: CoercionError) -> str:
    if error.token is None or error.target_type is None or error.msg is not None:
        return ""
    kinds: list[str | None] = []
    for one in get_args(error.target_type) or (error.target_type,):
        kinds += [f"{word!r}" for word in get_args(one)] if get_origin(one) is Literal else [KINDS.get(one)]
    if get_origin(error.target_type) is Literal or None in kinds:
        return ""
    name = error.token.keyword or (error.argument.name.upper() if error.argument else "it")
    return f"{name} takes {' or '.join(kind for kind in kinds if kind)}; received {error.token.value!r}."


def _line(arguments: Any) -> str:
    return f"samesense {shlex.join(arguments)}"
