"""Texts and values as one line of output."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import partial
from math import isfinite
from typing import Any


def without_breaks(text: str) -> str:
    """Return a text with tabs and line breaks replaced by spaces, so that it fits a TSV field or a line."""
    # All characters at which str.splitlines() splits, and tabs.
    return re.sub(r"[\t\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+", " ", text)


def json_line(value: object) -> str:
    """Return a value as one line of JSON; NaN and infinities, which JSON lacks, become null."""
    # Nearly no value has a NaN, so each is tried as it is before it is searched.
    encode = partial(json.dumps, ensure_ascii=False, default=str, allow_nan=False)
    try:
        return encode(value)
    except ValueError:
        return encode(_replace_non_finite(value))


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _replace_non_finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replace_non_finite(item) for item in value]
    if isinstance(value, float) and not isfinite(value):
        return None
    return value
