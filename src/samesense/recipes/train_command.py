"""The command that trains by given settings, as messages name it."""

from __future__ import annotations

from collections.abc import Mapping
from shlex import quote
from typing import Any


def train_command(settings: Mapping[str, Any]) -> str:
    """Return the command that trains by these settings; ``DATA`` and ``RUN`` stand for what its reader names."""
    flags = [word for name, value in settings.items() for word in _flag_words(name, value)]
    return " ".join(["samesense train DATA", *flags, "--output RUN"])


def _flag_words(name: str, value: Any) -> list[str]:
    """Return the words that give a setting on the command line; a flag of several values is repeated."""
    flag = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    if isinstance(value, Mapping):
        values = [f"{key}={field}" for key, field in value.items()]
    elif name == "label_range":  # two numbers after one flag
        return [f"--{flag}", *(f"{number:g}" for number in value)]
    elif isinstance(value, list | tuple):
        values = list(map(str, value))
    else:
        values = [str(value)]
    return [word for text in values for word in (f"--{flag}", quote(text))]
