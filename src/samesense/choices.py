"""Settings that take one of a few words: a function refuses others as the command line does."""

from __future__ import annotations

from typing import Any, get_args

from samesense.errors import ConfigError


def check_choice(name: str, value: object, choices: Any) -> None:
    """Raise ConfigError if ``value`` is none of ``choices``: a ``Literal``, or a sequence of words."""
    words = get_args(choices) or tuple(choices)
    if value not in words:
        raise ConfigError(f"`{name}` is one of {', '.join(words)}; received {value!r}.")
