"""Serving from Python: the application for any ASGI server, alone or inside another, and the server itself."""

import contextlib
import http.client
import importlib.util
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

import samesense
from samesense.errors import ConfigError, MissingExtraError, ModelError
from samesense.inference.models.load import load
from samesense.inference.serve import run
from tests.inference.serve.toy import listening

TEXTS = ["der Zug nach Köln", "a dog runs"]
QUERY = {"input": TEXTS}


def by_letters(texts):
    return np.array([[text.count(letter) + 1.0 for letter in "aeinr"] for text in texts], dtype=np.float32)


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def rows_of(answer):
    return np.array([row["embedding"] for row in answer["data"]])


def test_models_are_opened_at_the_start_and_closed_at_the_end(tiny_trunk):
    app = samesense.app({"tiny": tiny_trunk, "letters": by_letters}, precision="float32")
    for _ in range(2):  # it can be started again
        with TestClient(app) as client:
            health = client.get("/health").json()
            assert [model["name"] for model in health["models"]] == ["tiny", "letters"]
            answer = client.post("/v1/embeddings", json={**QUERY, "model": "letters"}).json()
            np.testing.assert_allclose(rows_of(answer), unit(by_letters(TEXTS)), atol=1e-6)
            expected = load(str(tiny_trunk), precision="float32").encode(TEXTS, normalize=True)
            answer = client.post("/v1/embeddings", json={**QUERY, "model": "tiny"}).json()
            np.testing.assert_allclose(rows_of(answer), expected, atol=1e-5)


def test_it_answers_under_a_prefix_where_the_other_application_does_not_start_it(tmp_path):
    (tmp_path / "keys.txt").write_text("sesame\n", encoding="utf-8")
    outer = FastAPI()
    outer.mount("/alike", samesense.app(samesense.load(by_letters, name="letters"), api_key_file=tmp_path / "keys.txt"))
    with TestClient(outer) as client:
        assert client.get("/alike/health").json()["models"][0]["name"] == "letters"
        assert "<html" in client.get("/alike/").text
        assert client.get("/alike/v1/models").status_code == 401
        key = {"Authorization": "Bearer sesame"}
        threads = [
            threading.Thread(target=client.post, args=("/alike/v1/embeddings",), kwargs={"json": QUERY, "headers": key})
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        answer = client.post("/alike/v1/embeddings", json=QUERY, headers=key).json()
        np.testing.assert_allclose(rows_of(answer), unit(by_letters(TEXTS)), atol=1e-6)


def test_it_answers_in_each_event_loop():
    client = TestClient(samesense.app({"letters": by_letters}))  # without a start, each request has a loop of its own
    for _ in range(2):
        answer = client.post("/v1/embeddings", json=QUERY)
        np.testing.assert_allclose(rows_of(answer.json()), unit(by_letters(TEXTS)), atol=1e-6)


def test_a_mounted_application_whose_models_cannot_be_opened_says_so(tmp_path):
    outer = FastAPI()
    outer.mount("/alike", samesense.app(str(tmp_path / "absent")))
    with TestClient(outer) as client:
        answer = client.get("/alike/health")
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "not_started")


def test_names_come_from_the_environment(tiny_trunk, monkeypatch):
    monkeypatch.setenv("SAMESENSE_MODELS", f"one='{tiny_trunk}' two={tiny_trunk}")
    monkeypatch.setenv("SAMESENSE_API_KEY", "sesame")
    with TestClient(samesense.app()) as client:
        assert client.get("/v1/models").status_code == 401
        answer = client.get("/v1/models", headers={"api-key": "sesame"}).json()
        assert [model["id"] for model in answer["data"]] == ["one", "two"]


def test_mistakes_are_told_before_the_start_or_at_it(tmp_path, monkeypatch):
    monkeypatch.delenv("SAMESENSE_MODELS", raising=False)
    with pytest.raises(ConfigError, match=r"No model is named. Give one.*or set SAMESENSE_MODELS"):
        samesense.app()
    with pytest.raises(ConfigError, match="serves one model at least"):
        samesense.app([])
    with pytest.raises(ConfigError, match="cut"):
        samesense.app(by_letters, long="fold")
    with pytest.raises(ConfigError, match="allowed_host"):
        samesense.app(by_letters, allowed_host=["http://a.example/"])
    with pytest.raises(ModelError), TestClient(samesense.app(str(tmp_path / "absent"))):
        pass
    with pytest.raises(ConfigError, match="A port is 0 to 65535"):
        samesense.serve(by_letters, port=70_000)
    with pytest.raises(ConfigError, match="belongs to a model that is opened by its name"):
        samesense.serve(by_letters, threshold="calibrated")


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"samesense\[serve\]"):
        samesense.app(by_letters)


def test_serve_answers_until_it_is_told_to_stop(monkeypatch, capsys):
    from tests.messages import forget_listeners

    forget_listeners()  # as in a script
    servers = []
    started = run.GracefulServer.__init__

    def remember(self, *arguments):
        started(self, *arguments)
        servers.append(self)

    monkeypatch.setattr(run.GracefulServer, "__init__", remember)
    thread = threading.Thread(target=samesense.serve, args=({"letters": by_letters},), kwargs={"port": 0}, daemon=True)
    thread.start()
    while not (servers and servers[0].started):
        time.sleep(0.01)
        assert thread.is_alive()
    port = servers[0].servers[0].sockets[0].getsockname()[1]
    assert post(port)["model"] == "letters"
    servers[0].handle_exit(signal.SIGTERM, None)
    thread.join(20)
    assert not thread.is_alive()
    assert f"samesense: serving 'letters' at http://127.0.0.1:{port}" in capsys.readouterr().err


def test_the_logs_of_a_program_that_serves_go_on(monkeypatch, tmp_path):
    monkeypatch.setattr(run.GracefulServer, "run", lambda self: None)
    log = logging.FileHandler(tmp_path / "mine.log", "w")
    monkeypatch.setattr(logging.root, "handlers", [log])
    samesense.serve({"letters": by_letters}, port=0)
    log.emit(logging.makeLogRecord({"msg": "still here"}))
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    log.close()
    assert (tmp_path / "mine.log").read_text() == "still here\nInvalid HTTP request received.\n"


def test_warnings_of_uvicorn_are_shown_where_no_logs_are_kept(monkeypatch, capsys):
    monkeypatch.setattr(run.GracefulServer, "run", lambda self: None)
    monkeypatch.setattr(logging.root, "handlers", [])
    monkeypatch.setattr(logging.getLogger("uvicorn"), "handlers", [])
    for _ in range(2):
        samesense.serve({"letters": by_letters}, port=0)
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    assert len(re.findall(r"WARNING:\W+Invalid HTTP request received\.\n", capsys.readouterr().err)) == 1


def test_serve_runs_in_a_notebook_whose_loop_runs_already(monkeypatch):
    import asyncio

    threads = []
    monkeypatch.setattr(run.GracefulServer, "run", lambda self: threads.append(threading.current_thread().name))

    async def cell():
        samesense.serve(by_letters, port=0)

    asyncio.run(cell())
    assert threads[0].startswith("server")


def test_an_application_of_several_workers_listens_once(tiny_trunk):
    app = samesense.app(str(tiny_trunk), precision="float32")
    with listening(app, None) as server:
        assert server.call("GET", "/health")[0] == 200


def post(port):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    with contextlib.closing(connection):
        connection.request("POST", "/v1/embeddings", json.dumps(QUERY), {"Content-Type": "application/json"})
        return json.loads(connection.getresponse().read())


RUNNERS = {
    "uvicorn": ["-m", "uvicorn", "--factory", "samesense:app", "--workers", "2", "--port", "0"],
    "gunicorn": [
        "-m",
        "gunicorn",
        "--worker-class",
        "uvicorn.workers.UvicornWorker",
        "--workers",
        "2",
        "--preload",
        "--bind",
        "127.0.0.1:0",
        "samesense:app()",
    ],
}
"""Servers that people have, with two workers each. The models of gunicorn's are opened after the fork."""


@pytest.mark.slow
@pytest.mark.posix
@pytest.mark.parametrize("name", RUNNERS)
def test_servers_that_people_have_run_it_in_several_workers(name, exported_layer, tmp_path):
    pytest.importorskip(name)
    environment = {**os.environ, "SAMESENSE_MODELS": str(exported_layer), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, *RUNNERS[name]]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=environment, cwd=tmp_path, **pipes) as server:
        lines = []
        try:
            while sum("Application startup complete" in line for line in lines) < 2:
                lines.append(server.stderr.readline())
                assert lines[-1], "".join(lines)
            port = re.search(r"http://127\.0\.0\.1:(\d+)", "".join(lines))[1]
            expected = load(str(exported_layer)).encode(TEXTS, normalize=True)
            for _ in range(6):
                np.testing.assert_allclose(rows_of(post(port)), expected, atol=1e-5)
            server.send_signal(signal.SIGTERM)
            lines += server.stderr.readlines()
            assert server.wait(60) == 0, "".join(lines)
        finally:
            server.kill()
    assert "Traceback" not in "".join(lines)
