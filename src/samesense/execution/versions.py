"""Versions of libraries and the machine, for the records of runs."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

LIBRARIES = (
    "samesense",
    "torch",
    "transformers",
    "sentence-transformers",
    "datasets",
    "numpy",
    "accelerate",
    "onnxruntime",
    "openvino",
    "tokenizers",
)
"""Packages whose versions affect the figures of a run."""


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the version of each package that is installed."""
    versions = {}
    for package in packages:
        try:
            versions[package] = _version(package)
        except PackageNotFoundError:
            continue
    return versions


# The metadata of a package is parsed anew each time, which takes milliseconds. Errors are not kept: a notebook may
# install a package while it runs.
_version = cache(version)


def environment() -> dict[str, Any]:
    """Return versions of Python and libraries, machine and time, as JSON types."""
    return {
        "versions": {"python": platform.python_version(), **installed_versions(LIBRARIES)},
        "machine": {"system": platform.system(), "machine": platform.machine(), "cores": os.cpu_count()},
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def changes(old: Mapping[str, Any], new: Mapping[str, Any], *, ignored: Collection[str] = ()) -> list[str]:
    """Return the differences between two records in words, one for each key; ``None`` stands for an absent value."""
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    return [f"{key} was {old.get(key)!r} and is {new.get(key)!r}" for key in keys if key not in ignored]
