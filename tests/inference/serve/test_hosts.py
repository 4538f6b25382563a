"""The header Host names the server, exactly, or the request is refused: DNS rebinding."""

import random
import socket

import pytest

from samesense.errors import ConfigError
from samesense.inference.serve.http.hosts import allowed_names, host_name
from tests.inference.serve.toy import listening

GOOD = {
    "localhost": "localhost",
    "LOCALHOST:1": "localhost",
    "127.0.0.1:65535": "127.0.0.1",
    "[::1]": "::1",
    "[::1]:80": "::1",
    "[0:0:0:0:0:0:0:1]": "::1",
    "a-b_c.d": "a-b_c.d",
    "xn--bcher-kva.example": "xn--bcher-kva.example",
}
BAD = [
    "",
    " ",
    "[",
    "]",
    ":",
    ":80",
    "@localhost",
    "evil@localhost",
    "evil:x@localhost:80",
    "localhost@evil",
    "localhost.",
    "localhost:",
    "localhost:80:80",
    "localhost:+80",
    "localhost:-1",
    "localhost:65536",
    "localhost:99999",
    "localhost:8_0",
    "localhost:\xb2",
    "localhost/",
    "localhost/@evil",
    "localhost?",
    "localhost#",
    "localhost,evil",
    "evil, localhost",
    "localhost evil",
    "localhost\tevil",
    "localhost;",
    "localhost\\",
    "local%68ost",
    "\uff4c\uff4f\uff43alhost",
    "localho\u017ft",
    "[::1",
    "::1",
    "::1]",
    "[::1].evil",
    "[::1]evil",
    "[::1]:80:80",
    "[::1%25lo]",
    "[::1]@evil",
    "[localhost]",
    "[127.0.0.1]",
    "[]",
    "[:::]",
    ".localhost",
    "localhost..",
    "a..b",
    "//localhost",
    "http://localhost",
    "localhost\0",
    "localhost\n",
    "localhost\r\nX: y",
    "*",
    "'localhost'",
    '"localhost"',
]


@pytest.mark.parametrize(("header", "name"), GOOD.items())
def test_the_name_in_a_header(header, name):
    assert host_name([header]) == name


@pytest.mark.parametrize("header", BAD)
def test_what_is_no_name(header):
    assert host_name([header]) is None


def test_a_header_comes_once():
    assert host_name([]) is None
    assert host_name(["localhost", "localhost"]) is None


def test_random_headers_are_the_name_alone_or_nothing():
    source = random.Random(3)
    pieces = ["localhost", "evil", "@", ":", "80", ".", "[::1]", "/", " ", "\t", "%", ",", "[", "]", "::1", "\xad", "-"]
    for _ in range(20_000):
        header = "".join(source.choices(pieces, k=source.randint(1, 4)))
        if host_name([header]) in ("localhost", "::1"):
            name, _, port = header.rpartition(":") if header.endswith("80") and ":" in header else (header, "", "")
            assert name in ("localhost", "[::1]") and port in ("", "80", "8080")


@pytest.mark.parametrize(
    "name", ["", "a:80", "http://a", "a/b", "a b", "user@a", "a.", "[::1]:80", "*", "*.example", "a" * 70_000 + "/"]
)
def test_allowed_names_are_names(name):
    with pytest.raises(ConfigError, match="without scheme, port and path"):
        allowed_names([name])


def test_allowed_names_are_written_as_browsers_send_them():
    assert allowed_names(["My.Name", "[::1]", "::1", "bücher.example", "10.0.0.1"]) == [
        "my.name",
        "::1",
        "::1",
        "xn--bcher-kva.example",
        "10.0.0.1",
    ]


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"Host: localhost\r\n", 200),
        (b"Host: evil@localhost\r\n", 421),
        (b"Host: localhost\r\nHost: localhost\r\n", 400),
        (b"Host: localhost\r\nHost: evil\r\n", 400),
        (b"", 400),
        (b"Host: \xef\xbc\xac\r\n", 421),
    ],
)
def test_over_a_socket(head, status):
    from samesense.inference.serve.http.app import build_app
    from samesense.inference.serve.services import Services
    from tests.inference.serve.toy import served

    services = Services([served()])
    with (
        listening(build_app(services, hosts=["localhost"]), services) as server,
        socket.create_connection(("127.0.0.1", server.port), 10) as caller,
    ):
        caller.sendall(b"GET /v1/models HTTP/1.1\r\n" + head + b"\r\n")
        assert caller.recv(1000).split()[1] == str(status).encode()


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("GET /health", 200),
        ("HEAD /health", 200),
        ("OPTIONS /health", 200),
        ("OPTIONS /", 200),
        ("GET /", 200),
        ("HEAD /", 200),
        ("GET /v1/models", 421),
        ("GET /metrics", 421),
        ("OPTIONS /v1/models", 421),
        ("POST /health", 421),
        ("GET /health HTTP/1.0\r\nHost: evil.example\r\nX:", 421),
        # A probe of Kubernetes asks the address of the pod. An address is no name that leads to another machine.
        ("GET /health HTTP/1.0\r\nHost: 10.1.2.3:8000\r\nX:", 200),
        ("HEAD /health HTTP/1.0\r\nHost: [fd00::17]:8000\r\nX:", 200),
        ("GET /health HTTP/1.0\r\nHost: 10.1.2.3.evil.example\r\nX:", 421),
        ("GET /health HTTP/1.0\r\nHost: evil@10.1.2.3\r\nX:", 421),
        ("GET / HTTP/1.0\r\nHost: 10.1.2.3:8000\r\nX:", 421),
        ("GET /v1/models HTTP/1.0\r\nHost: 10.1.2.3:8000\r\nX:", 421),
        ("HEAD /v1/models HTTP/1.0\r\nHost: localhost\r\nX:", 200),
        ("HEAD /metrics HTTP/1.0\r\nHost: localhost\r\nX:", 200),
    ],
)
def test_health_checks_name_an_address_or_no_host(line, status):
    from samesense.inference.serve.http.app import build_app
    from samesense.inference.serve.services import Services
    from tests.inference.serve.toy import served

    services = Services([served()])
    with (
        listening(build_app(services, hosts=["localhost"]), services) as server,
        socket.create_connection(("127.0.0.1", server.port), 10) as caller,
    ):
        caller.sendall(f"{line} HTTP/1.0\r\n\r\n".encode())
        head, _, body = b"".join(iter(lambda: caller.recv(1 << 16), b"")).partition(b"\r\n\r\n")
    assert head.split()[1] == str(status).encode()
    assert bool(body) == line.startswith(("GET", "POST")) or status == 421
