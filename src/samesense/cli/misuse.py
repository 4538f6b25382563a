"""Error messages for a wrong command line: the rule, what was received, and the likely fix."""

from __future__ import annotations

import inspect
import shlex
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from cyclopts import CycloptsError, Token
from cyclopts.exceptions import (
    CoercionError,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)
from cyclopts.utils import is_option_like

OTHER_FLAGS = {
    "--lr": "--learning-rate",
    "--bs": "--batch-size",
    "--fp16": "--precision bfloat16",
    "--bf16": "--precision bfloat16",
    "--out": "--output",
    "--dimensions": "--dim",
}
"""Flags of other programs, and their names here."""

OTHER_COMMANDS = {
    "search": "index query",
    "query": "index query",
    "find": "index query",
    "eval": "evaluate",
    "test": "evaluate",
    "finetune": "train",
    "fine-tune": "train",
    "embed": "encode",
    "predict": "similarity",
    "deduplicate": "dedup",
    "benchmark": "compare",
    "check": "doctor",
}
"""Commands of other programs, and their names here."""

KINDS: dict[Any, str] = {int: "a whole number", float: "a number", type(None): ""}


def explain_error(error: CycloptsError) -> str:
    """Return the message for an error, with a pointer to the help."""
    command = " ".join(("samesense", *(error.command_chain or ())))
    return f"{_explain(error, command)} See: {command} --help"


def _explain(error: CycloptsError, command: str) -> str:
    message = ""
    if isinstance(error, UnusedCliTokensError):
        message = _too_many(error, command)
    elif isinstance(error, MissingArgumentError):
        message = _missing(error, command)
    elif isinstance(error, UnknownOptionError):
        message = _unknown_flag(error)
    elif isinstance(error, UnknownCommandError):
        message = _unknown_command(error, command)
    elif isinstance(error, CoercionError):
        message = _no_number(error)
    return message or str(error).strip()


def _too_many(error: UnusedCliTokensError, command: str) -> str:
    unused = list(error.unused_tokens or ())
    words = list(error.root_input_tokens or ())
    takes = inspect.signature(error.target).parameters if error.target else {}
    if flag := _repeated_flag(error, words, unused):
        values = words[words.index(unused[0]) - 1], *unused
        return (
            f"{flag} takes one value, and is repeated for more; received {len(values)} after one {flag}. "
            f'Write "{" ".join(f"{flag} {shlex.quote(value)}" for value in values)}".'
        )
    # Files without a flag, as most programs take them.
    data_is_flag = "data" in takes and takes["data"].kind is inspect.Parameter.KEYWORD_ONLY
    if data_is_flag and "--data" not in words and set(unused) <= set(words):
        for word in unused:
            words.remove(word)
        return f'Data files come after --data, as in "{_line([*words, "--data", *unused])}".'
    if "data" in takes or "sentences" in takes:
        return f"{command} has no place for {', '.join(map(repr, unused))}. Put all files together, before the options."
    return (
        f"{command} has no place for {', '.join(map(repr, unused))}. Put a text of several words in quotes; "
        "options begin with --."
    )


def _repeated_flag(error: UnusedCliTokensError, words: list[str], unused: list[str]) -> str:
    """Return the flag of several values behind whose first value the unused words stand; ``""`` if there is none."""
    if error.app is None or not unused or unused[0] not in words:
        return ""
    start = words.index(unused[0])
    flag = words[start - 2] if start > 1 else ""
    if not flag.startswith("--") or words[start : start + len(unused)] != unused:
        return ""
    for argument in error.app.assemble_argument_collection():
        if flag in argument.names and argument.token_count()[1]:
            return flag
    return ""


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
        unknown = _unknown_option(error)
        if unknown is not None:
            # It is likely the missing one, misspelt.
            return _unknown_flag(unknown)
        values = ["NAME"] * max(1, count)
        return f'{name} is missing. Add it, as in "{_line([*(error.root_input_tokens or ()), name, *values])}".'
    example = _example(error.target)
    if example:
        return f'{command} needs {name.upper()}, as in "{example}".'
    return f"{command} needs {name.upper()}."


def _unknown_option(error: MissingArgumentError) -> UnknownOptionError | None:
    """Return the first option on the command line that the command does not have; None if it has all."""
    if error.app is None:
        return None
    words = list(error.root_input_tokens or ())
    if "--" in words:
        words = words[: words.index("--")]
    arguments = error.app.assemble_argument_collection()
    for word in words:
        # A number may be the value of an option.
        if not is_option_like(word):
            continue
        try:
            arguments.match(word.partition("=")[0])
        except ValueError:
            return UnknownOptionError(
                token=Token(value=word, source="cli"),
                argument_collection=arguments,
                root_input_tokens=error.root_input_tokens,
                verbose=False,
            )
    return None


def _example(target: Any) -> str:
    """Return the example in the docstring of a command, its second paragraph; ``""`` if it has none."""
    paragraphs = (inspect.getdoc(target) or "").split("\n\n")
    if len(paragraphs) > 1 and paragraphs[1].startswith("samesense ") and "\n" not in paragraphs[1]:
        return paragraphs[1]
    return ""


def _unknown_flag(error: UnknownOptionError) -> str:
    from samesense.data.rows.sources import leads_to

    flag = (error.token.keyword or error.token.value).partition("=")[0]
    if flag == "--device":
        return 'There is no --device here: a GPU is taken if there is one. For the CPU, set CUDA_VISIBLE_DEVICES="".'
    if error.token.keyword and error.token.value:
        return (
            f"{error.token.keyword} needs a value after it; received {error.token.value}, which looks like an option."
        )
    if flag == "-":
        return "Standard input (-) is not taken here. Write it to a file whose name ends in its format, such as .csv."
    if leads_to(flag, Path.is_file):
        return f"{flag} is a file here, and is read as an option. Write ./{flag}."
    advice = ""
    if not error.argument_collection and error.app is not None:
        # It stands where a text or a file is taken.
        error.argument_collection = error.app.assemble_argument_collection()
        advice = " Put -- before texts and files that begin so."
    names = {name for argument in error.argument_collection for name in argument.names}
    words = list(error.root_input_tokens or ())
    if "--" in words and flag in [word.partition("=")[0] for word in words[words.index("--") :]]:
        return f"{flag} is after --, where all words are texts or files. Put options before --."
    ours = OTHER_FLAGS.get(flag, "")
    if ours.partition(" ")[0] in names:
        return f"Unknown option: {flag}. Here it is {ours}."
    if f"Did you mean {flag}?" not in str(error):
        return f"{str(error).strip()}{advice}"
    return f"Unknown option: {flag}.{advice}"


def _unknown_command(error: UnknownCommandError, command: str) -> str:
    name = (error.unused_tokens or [""])[0]
    ours = OTHER_COMMANDS.get(name, "")
    if command == "samesense index" and ours.startswith("index "):
        ours = ours.removeprefix("index ")
    elif command != "samesense":
        ours = ""
    if not ours:
        return ""
    return f'Unknown command "{name}". Here it is: {command} {ours}.'


def _no_number(error: CoercionError) -> str:
    if error.token is None or error.target_type is None or error.msg is not None:
        return ""
    kinds: list[str | None] = []
    for annotation in get_args(error.target_type) or (error.target_type,):
        if get_origin(annotation) is Literal:
            kinds += [f"{word!r}" for word in get_args(annotation)]
        else:
            kinds.append(KINDS.get(annotation))
    # Of choices, cyclopts lists all; of other types, nothing better is known.
    if get_origin(error.target_type) is Literal or None in kinds:
        return ""
    name = error.token.keyword or (error.argument.name.upper() if error.argument else "it")
    return f"{name} takes {' or '.join(kind for kind in kinds if kind)}; received {error.token.value!r}."


def _line(arguments: Any) -> str:
    return f"samesense {shlex.join(arguments)}"
