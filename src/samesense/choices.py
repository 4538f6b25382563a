"""Settings that take one of a few words, or names: a function refuses others as the command line does."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

from samesense.errors import ConfigError


def check_choice(name: str, value: object, choices: Any) -> None:
    """Raise ConfigError if ``value`` is none of ``choices``: a ``Literal``, or a sequence of words."""
    words = get_args(choices) or tuple(choices)
    if value not in words:
        raise ConfigError(f"`{name}` is one of {', '.join(words)}; received {value!r}.")


def check_named(model: object) -> str:
    """Return the name of a model whose files are needed; ConfigError for one that is in memory."""
    if isinstance(model, str | Path):
        return str(model)
    raise ConfigError(
        f"The files of a model are read here, so it is named by its folder or as on the hub; received "
        f"{type(model).__name__}. Save it, and give the folder."
    )
