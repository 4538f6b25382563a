"""Results on disk: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from samesense.errors import DataError, OutputError
from samesense.files import write_bytes
from samesense.results import Results
from samesense.types import Result

WORDS = ("task", "dataset", "split", "subset", "metric", "protocol", "model")
WHOLE_NUMBERS = ("n", "seed")


def append_results(path: str | Path, results: Sequence[Result]) -> None:
    """Add results to the end of a file of JSON lines, which is made if absent; OutputError if it cannot be written.

    A whole new file is written beside the old and then takes its place, so an interruption leaves either the old or the
    new one. Two processes that append at the same moment may lose one of the additions.
    """
    lines = "".join(json.dumps(result.to_dict(), allow_nan=False) + "\n" for result in results)
    try:
        before = Path(path).read_bytes() if Path(path).exists() else b""
    except OSError as err:
        raise OutputError(f"Results cannot be written to {path}: {err}") from err
    if before and not before.endswith(b"\n"):
        before += b"\n"
    write_bytes(path, before + lines.encode("utf-8"), sync=True)


def read_results(path: str | Path) -> Results:
    """Read a file that :func:`append_results` wrote, in the order of its lines; blank lines are passed over.

    DataError if the file cannot be read, or a line is no result (the line is named).
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as err:
        raise DataError(f"Results cannot be read from {path}: {err}") from err
    results = Results()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            results.append(_result(json.loads(line)))
        except (ValueError, RecursionError) as err:
            raise DataError(f"{path}, line {number} is not a result: {err}") from err
    return results


def _result(found: Any) -> Result:
    """Return the result that a JSON value stands for, or raise ValueError."""
    if not isinstance(found, dict):
        raise ValueError("it must be a JSON object")
    known = {field.name: field.default for field in fields(Result)}
    unknown = sorted(found.keys() - known.keys())
    if unknown:
        raise ValueError(f"unknown field {unknown[0]!r}")
    for name, default in known.items():
        if name not in found and default is MISSING:
            raise ValueError(f"field {name!r} is missing")
        if found.get(name) is None and default is None:
            continue
        _check_kind(name, found[name])
    return Result(**found)


def _check_kind(name: str, value: Any) -> None:
    if name in WORDS:
        kind, fits = "text", isinstance(value, str)
    elif name in WHOLE_NUMBERS:
        kind, fits = "a whole number", isinstance(value, int) and not isinstance(value, bool)
    else:
        kind, fits = "a number", isinstance(value, int | float) and not isinstance(value, bool)
    if not fits:
        raise ValueError(f"field {name!r} must be {kind}, got {value!r}")
