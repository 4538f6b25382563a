"""Which libraries computed something, for the records of runs."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version


def installed_versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the version of each package that is installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
