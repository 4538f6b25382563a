"""Every exception samesense raises on purpose, on one screen.

    SamesenseError              anything a user can put right; the command line prints it and exits with 2
    ├── DataError               a file, row or column breaks a rule of its format
    │   ├── BadRowsError        rows of a source cannot be used; it holds them all
    │   └── PromiseError        pairs do not show the precision or recall that is asked for
    ├── ConfigError             a setting is unknown, out of range, or contradicts another
    │   └── AnotherRunError     a folder holds a run of other settings or data
    ├── ModelError              a model folder or name cannot be read, or gave unusable output
    ├── OutputError             writing would overwrite or lose something
    ├── ResultError             it holds what the function would have returned
    │   ├── UnfinishedError     a part of the work failed; the result is that of the others
    │   └── UnwrittenError      a finished result could not be written; an OutputError too
    └── MissingExtraError       an optional dependency is needed and absent

A message says the rule, what was received, and the likely fix.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class SamesenseError(Exception):
    """Base of all deliberate errors."""


class DataError(SamesenseError):
    """A file, row or column breaks a rule of its format."""


class BadRowsError(DataError):
    """Rows of a source cannot be used.

    Attributes:
        rows: of each bad cell, in order, ``row``, ``column``, ``what`` is wrong and how to ``fix`` it.
    """

    def __init__(self, message: str, rows: list[dict[str, object]]) -> None:
        super().__init__(message)
        self.rows = rows


class PromiseError(DataError):
    """Pairs do not show the precision or recall that is asked for."""


class ConfigError(SamesenseError):
    """A setting is unknown, out of range, or contradicts another."""


class AnotherRunError(ConfigError):
    """A folder holds a run of other settings or data than the one that is to go on there."""


class ModelError(SamesenseError):
    """A model folder or name cannot be read, or gave unusable output."""


class OutputError(SamesenseError):
    """Writing would overwrite or lose something."""


class ResultError(SamesenseError):
    """Work ended without the whole of its result, or could not write it.

    Attributes:
        result: what the function would have returned, as far as it is finished.
    """

    def __init__(self, message: str, result: Any) -> None:
        super().__init__(message)
        self.result = result


class UnwrittenError(OutputError, ResultError):
    """A finished result could not be written, as on a full disk; it is the ``result``."""

    @classmethod
    @contextmanager
    def holding(cls, result: Any, *failures: str) -> Iterator[None]:
        """Raise it with a result in place of an OutputError from the block, which writes the result.

        ``failures`` are messages of what else failed, and come after that of the file.
        """
        try:
            yield
        except OutputError as error:
            raise cls(" ".join([str(error), *failures]), result) from error


class UnfinishedError(ResultError):
    """A part of the work failed, such as one of several data sets; the ``result`` is that of the others."""


class MissingExtraError(SamesenseError):
    """An optional dependency is needed and absent."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(
            f"{package} is needed here and is not installed. Install it with: pip install 'samesense[{extra}]'"
        )

    @classmethod
    def check(cls, extra: str, *packages: str) -> None:
        """Raise it for the first of an extra's packages that is not installed; none of them is imported."""
        for package in packages:
            # Names of packages have hyphens where names of modules have underscores.
            if importlib.util.find_spec(package.replace("-", "_")) is None:
                raise cls(package, extra)
