import gzip
import socket
import threading
import time

import pytest

from samesense.inference.serve.limits import Limits
from tests.inference.serve.toy import Toy, running, served


def wait_until(holds):
    end = time.monotonic() + 10
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture(scope="module")
def locked():
    with running(keys=("first key", "zweiter schlüssel")) as it:
        yield it


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer ", "Bearer wrong", "Basic first key", "first key"])
def test_without_the_key_nothing_is_answered(locked, header):
    headers = {} if header is None else {"Authorization": header}
    for method, path in [
        ("POST", "/v1/embeddings"),
        ("GET", "/metrics"),
        ("GET", "/v1/models"),
        ("GET", "/openapi.json"),
    ]:
        status, answer, back = locked.call(method, path, headers=headers)
        assert (status, answer["error"]["code"], back["www-authenticate"]) == (401, "invalid_api_key", "Bearer")
        assert "wrong" not in answer["error"]["message"]


def test_any_key_opens_and_health_and_page_are_open(locked):
    assert locked.call("GET", "/v1/models", headers={"Authorization": "Bearer first key"})[0] == 200
    assert locked.call("GET", "/v1/models", headers={"Authorization": "bearer first key"})[0] == 200
    assert locked.call("GET", "/health")[0] == 200
    assert locked.call("GET", "/", parsed=False)[0] == 200


def test_a_body_that_is_too_large_is_refused_announced_or_not():
    with running(served(), limits=Limits(max_body=1000)) as server:
        status, answer, _ = server.call("POST", "/v1/embeddings", raw=b" " * 1001)
        assert (status, answer["error"]["code"]) == (413, "too_large")
        assert "may have 1000 bytes; received 1001" in answer["error"]["message"]
        with socket.create_connection(("127.0.0.1", server.port)) as caller:
            caller.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n")
            caller.sendall(b"3e9\r\n" + b" " * 1001 + b"\r\n")
            assert b" 413 " in caller.recv(1000).splitlines()[0]


@pytest.mark.parametrize(("encoding", "status"), [("gzip", 415), ("br, gzip", 415), ("identity", 200), ("", 200)])
def test_a_compressed_body_is_refused_with_its_name(encoding, status):
    raw = b'{"input": "x"}'
    if status == 415:
        raw = gzip.compress(raw)
    with running() as server:
        headers = {"Content-Encoding": encoding}
        answered, answer, back = server.call("POST", "/v1/embeddings", raw=raw, headers=headers)
    assert answered == status
    if status == 415:
        assert back["accept-encoding"] == "identity" and answer["error"]["code"] == "unsupported_encoding"
        assert f"Content-Encoding: {encoding}. Send the JSON as it is" in answer["error"]["message"]


def test_an_unfinished_request_is_given_up():
    with running(served(), limits=Limits(max_seconds=0.2)) as server:
        with socket.create_connection(("127.0.0.1", server.port)) as caller:
            caller.sendall(b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: 50\r\n\r\n{")
            assert b" 408 " in caller.recv(1000).splitlines()[0]
        assert server.embed("x")[0] == 200


def test_a_late_answer_is_an_error_and_the_server_goes_on():
    toy = Toy()
    with running(served(toy), limits=Limits(max_seconds=0.3)) as server:
        toy.free.clear()
        status, answer, _ = server.embed("x")
        toy.free.set()
        assert (status, answer["error"]["code"]) == (504, "timeout")
        wait_until(lambda: server.service.all[0].batcher.queued == 0)
        assert server.embed("x")[0] == 200


def test_a_full_queue_says_when_to_come_again():
    toy = Toy()
    with running(served(toy), limits=Limits(queue_tokens=5)) as server:
        toy.free.clear()
        first = threading.Thread(target=server.embed, args=("one two three four",))
        first.start()
        wait_until(lambda: server.service.all[0].batcher.queued == 4)
        status, answer, headers = server.embed("five six")
        toy.free.set()
        first.join()
    assert (status, answer["error"]["type"], answer["error"]["code"]) == (429, "rate_limit_error", "queue_full")
    assert 1 <= int(headers["retry-after"]) <= 60


def test_a_caller_that_goes_frees_its_place():
    toy = Toy()
    with running(served(toy)) as server:
        toy.free.clear()
        caller = socket.create_connection(("127.0.0.1", server.port))
        body = b'{"model": "toy", "input": ["left alone", "and gone"]}'
        caller.sendall(
            b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: %d\r\n\r\n%s" % (len(body), body)
        )
        wait_until(lambda: server.service.all[0].batcher.queued == 4)
        caller.close()
        wait_until(lambda: server.service.all[0].batcher.queued == 0)
        toy.free.set()
        assert server.embed("still there")[0] == 200
        wait_until(lambda: server.service.running == 0)
        assert 'status="499"' in server.call("GET", "/metrics", parsed=False)[1]


def test_while_stopping_only_health_and_metrics_answer():
    with running() as server:
        server.service.stopping = True
        status, answer, headers = server.embed("x")
        assert (status, answer["error"]["code"], headers["retry-after"]) == (503, "stopping", "1")
        assert headers["connection"] == "close"
        status, health, _ = server.call("GET", "/health")
        assert (status, health["status"]) == (503, "stopping")
        assert server.call("GET", "/metrics", parsed=False)[0] == 200
