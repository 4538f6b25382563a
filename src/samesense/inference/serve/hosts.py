"""Names of a server: those that are allowed, and the one in a request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv6Address

from samesense.errors import ConfigError

_HOST = re.compile(r"(?:(?P<name>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)|\[(?P<v6>[0-9a-f:.]+)\])(?::(?P<port>[0-9]{1,5}))?")
"""The header in small letters. Source: RFC 9110, 7.2; names without escapes, users and the final dot of a root."""


def host_name(headers: Sequence[str]) -> str | None:
    """Return the name in the header ``Host``, without the port and in small letters; ``None`` if it is not exactly one.

    Nothing else may stand there: of ``evil@localhost`` a lenient reader takes ``localhost``.

    >>> host_name(["LocalHost:8000"]), host_name(["[::1]:80"]), host_name(["evil@localhost"])
    ('localhost', '::1', None)
    """
    if len(headers) != 1:
        return None
    name, _ = _parse(headers[0])
    return name


def allowed_names(names: Sequence[str]) -> list[str]:
    """Return names of a server as they stand in requests; ConfigError for what is no name.

    >>> allowed_names(["My.Name", "[::1]", "b\u00fccher.example"])
    ['my.name', '::1', 'xn--bcher-kva.example']
    """
    allowed = []
    for allowed_name in names:
        address = _address(allowed_name.strip("[]").lower())
        name, port = (address, None) if address else _parse(_ascii(allowed_name))
        if name is None or port is not None:
            raise ConfigError(
                f"An `allowed_host` is a name or an address without scheme, port and path; received "
                f"{allowed_name[:100]!r}. Example: my.server.example"
            )
        allowed.append(name)
    return allowed


def _parse(header: str) -> tuple[str | None, str | None]:
    """Return the name and the port in a header; ``None`` for what is not there, or is not in order."""
    match = _HOST.fullmatch(header.lower()) if header.isascii() else None
    if match is None or int(match["port"] or 0) > 65535:
        return None, None
    return match["name"] or _address(match["v6"]), match["port"]


def _address(text: str) -> str | None:
    """Return an address of IPv6 in its shortest form; ``None`` for anything else."""
    try:
        return str(IPv6Address(text))
    except ValueError:
        return None


def _ascii(name: str) -> str:
    """Return a name as browsers send it; what cannot be sent as it is."""
    try:
        return name.encode("idna").decode()
    except UnicodeError:
        return name
