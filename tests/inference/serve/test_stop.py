"""Told to stop, a server answers what it has accepted, refuses the rest, and leaves with code 0."""

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path

import pytest

from samesense.errors import ConfigError
from samesense.inference.serve.run import serve
from samesense.inference.serve.services import Services
from tests.inference.serve.toy import served

CODE = """
import logging
import sys
import threading
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.run import serve
from samesense.inference.serve.services import Services
from tests.inference.serve.toy import Toy, served
print("torch" in sys.modules, flush=True)
logging.basicConfig(level="INFO", stream=sys.stdout, format="%(message)s")
toy = Toy(patience=float(sys.argv[2]), holds=True)
threading.Thread(target=lambda: sys.stdin.readline() and toy.free.set(), daemon=True).start()
serve(Services([served(toy)], limits=Limits(grace=float(sys.argv[1]))), port=0)
print("left", flush=True)
"""


@contextmanager
def process(grace=20.0, patience=20.0):
    """A server whose model computes nothing before a line is written to it, or its patience ends; and the port."""
    root = Path(__file__).parents[3]
    command = [sys.executable, "-c", CODE, str(grace), str(patience)]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, cwd=root, text=True, **pipes) as running:
        try:
            assert running.stdout.readline() == "False\n", "serving needs no torch by itself"
            yield running, int(re.search(r":(\d+)$", running.stdout.readline().strip())[1])
        finally:
            running.kill()


def ask(connection, text):
    body = json.dumps({"model": "toy", "input": text})
    connection.request("POST", "/v1/embeddings", body, {"Content-Type": "application/json"})


@pytest.mark.posix
def test_accepted_requests_are_answered_and_new_ones_refused():
    with process() as (running, port):
        early = [http.client.HTTPConnection("127.0.0.1", port, timeout=20) for _ in range(4)]
        for number, connection in enumerate(early):
            ask(connection, f"held {number}")
        idle = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        idle.request("GET", "/health")
        assert idle.getresponse().read()
        running.send_signal(signal.SIGTERM)
        assert running.stdout.readline() == "SIGTERM: finishing 4 requests\n"
        ask(idle, "too late")
        refused = idle.getresponse()
        assert (refused.status, json.load(refused)["error"]["code"]) == (503, "stopping")
        print(file=running.stdin, flush=True)
        assert [connection.getresponse().status for connection in early] == [200] * 4
        assert running.stdout.readline() == "left\n"
        assert running.wait(20) == 0


@pytest.mark.posix
@pytest.mark.slow
@pytest.mark.parametrize("again", [True, False])
def test_a_second_signal_or_the_end_of_grace_ends_it(again):
    with process(20.0 if again else 0.3, patience=2.0) as (running, port):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        ask(connection, "held")
        idle = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        idle.request("GET", "/health")
        assert idle.getresponse().read()
        running.send_signal(signal.SIGTERM)
        assert running.stdout.readline().startswith("SIGTERM")
        if again:
            running.send_signal(signal.SIGTERM)
        assert running.wait(20) == 0


def test_a_port_in_use_is_named():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        failed = []

        def run():
            try:
                serve(Services([served()]), port=listener.getsockname()[1])
            except ConfigError as error:
                failed.append(str(error))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join(10)
    assert "Cannot listen on 127.0.0.1" in failed[0]
