"""Host names: those that a server is allowed to be called by, and the one in the Host header of a request."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address

from samesense.errors import ConfigError

_HOST = re.compile(r"(?:(?P<name>[a-z0-9_-]+(?:\.[a-z0-9_-]+)*)|\[(?P<v6>[0-9a-f:.]+)\])(?::(?P<port>[0-9]{1,5}))?")
"""The header in lower case. Source: RFC 9110, 7.2; without percent-encoding, user info and a final dot."""


def host_name(headers: Sequence[str]) -> str | None:
    """Return the name in the Host header, in lower case and without the port; ``None`` unless it is exactly one.

    The whole header must match: a lenient parser would read ``localhost`` from ``evil@localhost``.

    >>> host_name(["LocalHost:8000"]), host_name(["[::1]:80"]), host_name(["evil@localhost"])
    ('localhost', '::1', None)
    """
    if len(headers) != 1:
        return None
    name, _ = _parse(headers[0])
    return name


def is_address(name: str | None) -> bool:
    """Return whether a name, as :func:`host_name` returns it, is an IP address.

    >>> is_address("10.1.2.3"), is_address("::1"), is_address("localhost")
    (True, True, False)
    """
    try:
        ip_address(name or "")
    except ValueError:
        return False
    return True


def allowed_names(names: Sequence[str]) -> list[str]:
    """Return the names of a server as clients send them; ConfigError for what is not a host name.

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
    """Return the name and the port in a Host header; ``None`` for what is missing or malformed."""
    match = None
    # lower() maps some other letters to ASCII, such as the Kelvin sign to k.
    if header.isascii():
        match = _HOST.fullmatch(header.lower())
    if match is None or int(match["port"] or 0) > 65535:
        return None, None
    return match["name"] or _address(match["v6"]), match["port"]


def _address(text: str) -> str | None:
    """Return an IPv6 address in its shortest form; ``None`` for anything else."""
    try:
        return str(IPv6Address(text))
    except ValueError:
        return None


def _ascii(name: str) -> str:
    """Return a name in IDNA encoding, as browsers send it; unchanged where it has none."""
    try:
        return name.encode("idna").decode()
    except UnicodeError:
        return name
