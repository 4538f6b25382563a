"""A server among clients that are slow, gone, greedy, lying or mad: right answers for all others, and flat memory."""

import http.client
import json
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import pytest

from samesense.errors import ConfigError
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.services import Services
from tests.hostile.conftest import figures, rounds
from tests.inference.serve.conftest import _no_network  # noqa: F401 - a server of this machine may be reached
from tests.inference.serve.toy import StoreSearch, running, served, store_search, vector

JSON = {"Content-Type": "application/json"}

CODE = """
import resource, sys
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.run import serve
from samesense.inference.serve.services import Services
from tests.inference.serve.toy import served, store_search
import logging
logging.basicConfig(level="INFO", stream=sys.stdout, format="%(message)s")
given = eval(sys.argv[1])
if files := given.pop("files", None):
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
where = {name: given.pop(name) for name in ("host", "keys", "hosts") if name in given}
serve(Services([served(search=store_search)], limits=Limits(**given)), port=0, **where)
"""


@contextmanager
def process(**settings):
    """Start a server in a separate process; yield the process and its port."""
    command = [sys.executable, "-c", CODE, repr(settings)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], **pipes) as child:
        try:
            yield child, int(child.stdout.readline().rsplit(b":", 1)[1])
        finally:
            child.kill()


def ask(port, path="/v1/models", body=None, headers=None, method=None):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method or ("GET" if body is None else "POST"), path, data, headers or {})
        reply = connection.getresponse()
        return reply.status, reply.read(), reply.headers
    finally:
        connection.close()


def test_hits_of_one_request_are_bounded():
    with running(served(search=store_search)) as server:
        status, answer, _ = server.post("/search", {"query": ["a man"] * 2048, "top": 1000})
        assert (status, answer["error"]["param"]) == (413, "top")
        assert "20480 hits together; received 2048 queries with 'top' 1000" in answer["error"]["message"]
        status, answer, _ = server.post("/search", {"query": ["a man"] * 2048, "top": 10})
        assert status == 200 and [item["index"] for item in answer["data"]] == list(range(2048))


def test_a_search_for_which_no_one_waits_ends_and_others_have_their_turn():
    searched = []

    class Slow(StoreSearch):
        def search(self, vectors, **options):
            searched.append(len(vectors))
            time.sleep(0.1)
            return super().search(vectors, **options)

    with running(served(search=Slow()), limits=Limits(max_seconds=1.0)) as server:
        late = threading.Thread(target=server.post, args=("/search", {"query": ["a man"] * 2048}))
        late.start()
        time.sleep(0.3)
        started = time.monotonic()
        assert server.embed("a dog")[0] == 200
        assert time.monotonic() - started < 0.6
        late.join()
        time.sleep(0.3)
        begun = len(searched)
        time.sleep(0.3)
        assert len(searched) == begun < 2048 / 64 and max(searched) <= 64


@pytest.mark.parametrize(
    ("options", "host", "status"),
    [
        ({}, "evil.example", 421),
        ({}, "127.0.0.1.evil.example:80", 421),
        ({}, "", 421),
        ({}, "[", 421),
        ({}, "localhost", 200),
        ({}, "LOCALHOST:1", 200),
        ({}, "127.0.0.1", 200),
        ({}, "[::1]:5", 200),
        ({"hosts": ["my.name"]}, "my.name:80", 200),
        ({"hosts": ["my.name"]}, "localhost", 200),
        ({"hosts": ["my.name"]}, "evil.example", 421),
        ({"keys": ["k"]}, "any.name", 200),
        ({"keys": ["k"], "hosts": ["my.name"]}, "any.name", 421),
    ],
)
def test_names_by_which_the_server_may_be_asked(options, host, status, monkeypatch):
    from samesense.inference.serve import run

    captured = {}
    monkeypatch.setattr(run, "GracefulServer", lambda config, *_: captured.update(app=config.app) or _Never())
    run.serve(Services([served()]), **options)
    from starlette.testclient import TestClient

    with TestClient(captured["app"], headers={"Authorization": "Bearer k"}) as client:
        assert client.get("/v1/models", headers={"Host": host}).status_code == status
        answer = client.get("/v1/models/", headers={"Host": host}, follow_redirects=False)
        assert answer.status_code == status and "location" not in answer.headers


class _Never:
    def run(self):
        pass


@pytest.mark.parametrize("name", ["max_seconds", "grace", "wait_ms", "max_header_seconds", "max_texts"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
def test_limits_are_numbers(name, value):
    with pytest.raises(ConfigError, match=name):
        Limits(**{name: value})


@pytest.mark.parametrize("port", [-1, 65536, 10**9])
def test_a_port_is_a_port(port):
    from samesense.inference.serve.run import serve

    with pytest.raises(ConfigError, match="0 to 65535"):
        serve(Services([served()]), port=port)


@pytest.mark.posix
def test_slow_heads_and_slow_readers_are_given_up_and_half_bodies_do_not_delay_a_stop():
    with process(max_header_seconds=0.5, max_seconds=20.0) as (child, port):
        slow = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(3)]
        for number, caller in enumerate(slow):
            caller.sendall([b"", b"GET / HT", b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\nGET / HTTP"][number])
        for caller in slow:
            while caller.recv(10_000):
                pass  # until it is closed
        half = socket.create_connection(("127.0.0.1", port), 10)
        half.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Length: 50\r\n\r\n{")
        assert ask(port)[0] == 200
        started = time.monotonic()
        child.send_signal(signal.SIGTERM)
        assert b" 503 " in half.recv(1000).splitlines()[0]
        assert child.wait(20) == 0 and time.monotonic() - started < 10


@pytest.mark.posix
def test_a_body_in_tiny_pieces_is_refused():
    def send(port, size, count):
        with socket.create_connection(("127.0.0.1", port), 10) as caller:
            caller.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n")
            caller.sendall(b"Content-Type: application/json\r\n\r\n")
            for piece in [b'{"input": "x"', *[b" " * size] * count, b"}"]:
                caller.sendall(b"%x\r\n%s\r\n" % (len(piece), piece))
            caller.sendall(b"0\r\n\r\n")
            return caller.recv(10_000).split()[1]

    with process() as (_, port):
        assert send(port, 1, 900) == send(port, 100, 2000) == b"200"
        with suppress(BrokenPipeError, ConnectionResetError):  # it may be closed before all is sent
            assert send(port, 1, 50_000) == b"400"
        assert ask(port)[0] == 200


@pytest.mark.posix
@pytest.mark.slow
def test_few_file_descriptors_do_not_fill_the_log():
    with process(files=40, max_header_seconds=1.0) as (child, port):
        crowd = [socket.create_connection(("127.0.0.1", port), 10) for _ in range(80)]
        time.sleep(3)
        for caller in crowd:
            caller.close()
        deadline = time.monotonic() + 20
        while True:
            try:
                if ask(port)[0] == 200:
                    break
            except OSError:
                assert time.monotonic() < deadline
        child.send_signal(signal.SIGTERM)
        log = child.stdout.read()
        assert b"ulimit" in log and len(log) < 5000, log[:2000]


def nonsense(source, port):
    """One request that no good client sends."""
    body = json.dumps({"model": "toy", "input": "x"}).encode()
    head = b"POST /v1/embeddings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    whole = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    sent = source.choice(
        [
            whole[: source.randrange(len(whole))],
            source.randbytes(source.randrange(400)),
            head + b"Content-Length: 99999999999\r\n\r\n",
            head + b"Content-Length: -1\r\n\r\n",
            head + b"Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
            head + b"X: " + b"y" * 70_000 + b"\r\n\r\n",
            head + b"Content-Length: %d\r\n\r\n" % (len(body) + 9) + body + b"[[[[[[[[[",
            head + b"Content-Length: 8000000\r\n\r\n" + b"[" * 8_000_000,
            whole * 20,
            b"GET /search/%2e%2e/%00 HTTP/1.1\r\nHost: \xff\r\n\r\n",
        ]
    )
    with socket.create_connection(("127.0.0.1", port), 5) as caller:
        try:
            caller.sendall(sent)
            if source.random() < 0.5:
                caller.settimeout(0.2)
                caller.recv(100)
        except OSError:
            pass


def good(source, port, wrong):
    """One request whose answer is known."""
    texts = [f"text {source.randrange(10**9)}" for _ in range(source.randint(1, 9))]
    status, content, _ = ask(port, "/v1/embeddings", {"model": "toy", "input": texts}, JSON)
    rows = [item["embedding"] for item in json.loads(content)["data"]] if status == 200 else []
    if len(rows) != len(texts) or not np.allclose(rows, [vector(text) for text in texts], atol=1e-5):
        wrong.append((status, content[:200]))


def memory(pid):
    """Return the resident kilobytes of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise AssertionError("no VmRSS")


@pytest.mark.posix
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
def test_good_clients_between_bad_ones_get_their_own_answers():
    count = rounds(short=60, long=11_000)
    clients = rounds(short=4, long=64)
    wrong = []
    dropped = []  # a client that waits in vain ends its thread, which fails the test

    def client(port, seed, times):
        source = random.Random(seed)
        for _ in range(times):
            try:
                if source.random() < 0.5:
                    nonsense(source, port)
                else:
                    good(source, port, wrong)
            except (BrokenPipeError, ConnectionResetError) as error:  # its head took longer than the server waits
                dropped.append(error)

    def all_clients(port, base, times):
        threads = [threading.Thread(target=client, args=(port, base + n, times // clients)) for n in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    with process(max_header_seconds=1.0, max_seconds=5.0) as (child, port):
        threading.Thread(target=child.stdout.read, daemon=True).start()  # a full pipe would stop what logs into it
        started = time.monotonic()
        all_clients(port, 0, count)
        before = memory(child.pid)
        all_clients(port, 100, count)
        after = memory(child.pid)
        seconds = round(time.monotonic() - started)
        assert ask(port, "/health")[0] == 200 and not wrong, wrong[:3]
        assert after < before * 1.3 + 20_000, (before, after)
        child.send_signal(signal.SIGTERM)
        assert child.wait(20) == 0
    counts = {"requests": 2 * count, "clients": clients, "seconds": seconds, "wrong": len(wrong), "cut": len(dropped)}
    figures("server", {**counts, "before": before, "after": after})
