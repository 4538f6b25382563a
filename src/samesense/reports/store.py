"""Results on disk: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from samesense.errors import DataError, OutputError
from samesense.files import write_bytes
from samesense.results import Results
from samesense.types import Result

_RESULT = TypeAdapter(Result)


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
            results.append(_RESULT.validate_json(line))
        except ValidationError as err:
            first = err.errors()[0]
            place = "".join(f"field {name!r}: " for name in first["loc"])
            raise DataError(f"{path}, line {number} is not a result: {place}{first['msg']}") from err
    return results
