"""JSON files read by a schema: what is damaged is refused with its file and key, before anything is computed of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from samesense.errors import DataError, SamesenseError
from samesense.failures import excerpt

LARGEST = 2**26
"""Bytes of a file that a schema is for; a larger one is none of these."""

FIX = "Make its folder again."
"""What to do about a damaged file, unless its reader knows better."""

Schema = TypeVar("Schema", bound=BaseModel)


class Record(BaseModel):
    """A JSON object: the keys that are read are declared, and others are allowed."""

    # protected_namespaces: keys of models begin with model_, which pydantic reserves by default.
    model_config = ConfigDict(strict=True, extra="allow", protected_namespaces=())


def read_checked(
    path: Path, schema: type[Schema], *, fix: str = FIX, error: type[SamesenseError] = DataError
) -> Schema:
    """Return what a file of JSON holds, as its schema has it.

    Raises:
        DataError: or what ``error`` names, with the file, the key, what it holds, and ``fix``.
    """
    try:
        # Before the file is read, which may be gigabytes by mistake.
        if path.stat().st_size > LARGEST:
            raise error(f"{path} must hold at most {LARGEST:,} bytes; it holds {path.stat().st_size:,}. {fix}")
        return schema.model_validate_json(path.read_bytes())
    except OSError as problem:
        raise error(f"{path} must be a file of JSON ({problem}). {fix}") from problem
    except ValidationError as problem:
        raise error(f"{path}: {described(problem)} {fix}") from problem


def read_object(path: Path, schema: type[Record], *, fix: str = FIX) -> dict[str, Any]:
    """Return the object in a file of JSON as it stands, once its schema has it; raises as :func:`read_checked`."""
    # Defaults of the schema that the file does not have are not added.
    return read_checked(path, schema, fix=fix).model_dump(exclude_unset=True)


def described(problem: ValidationError) -> str:
    """Return where the first problem is and what it is."""
    first = problem.errors(include_url=False, include_context=False)[0]
    key = ".".join(map(str, first["loc"]))
    if first["type"] == "json_invalid":
        return f"it must be JSON ({first['msg']})."
    where = f"`{key[:100]}`" if key else "what it holds"
    # pydantic puts these words before the message of a validator.
    message = first["msg"].removeprefix("Value error, ")[:200]
    return f"{where} is damaged: {message}; received {excerpt(first['input'], 60)}."
