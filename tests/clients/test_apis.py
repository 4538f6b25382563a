"""Common clients call a running `samesense serve`, and get the vectors of the model."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager

import numpy as np
import pytest

from tests.clients.test_readers import run

pytestmark = pytest.mark.clients

SETTING = "check_embedding_ctx_length=False"
CLIENTS = ("openai", "litellm", "llama-index", "haystack", "chromadb", f"langchain-openai, {SETTING}")
RERANKERS = ("cohere", "litellm rerank")


@contextmanager
def served(folder):
    """Serve one model in a separate process; yield the URL of its API."""
    command = [sys.executable, "-m", "samesense", "serve", str(folder), "--port", "0", "--precision", "float32"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, env={**os.environ, "HF_HUB_OFFLINE": "1"}, **pipes) as server:
        try:
            line = next(line for line in server.stdout if " at http://" in line)
            yield f"{line.rsplit(' at ', 1)[1].strip()}/v1"
        finally:
            server.kill()


@pytest.fixture(scope="module")
def answers(home, environments, tmp_path_factory):
    """The replies to each client, the expected unit vectors, and the versions."""
    reference = json.loads((home / "mean.json").read_text(encoding="utf-8"))
    rows = np.array(reference["rows"])
    with served(home / "mean") as url:
        jobs = [
            {"name": name, "url": url, "model": "mean", "inputs": reference["inputs"]}
            for name in (*CLIENTS, *RERANKERS, "langchain-openai")
        ]
        replies, versions = run("apis", jobs, tmp_path_factory.mktemp("apis"), environments, "apis")
    return replies, rows / np.linalg.norm(rows, axis=1, keepdims=True), versions


@pytest.mark.parametrize("name", CLIENTS)
def test_vectors(answers, results, name):
    replies, vectors, versions = answers
    assert "error" not in replies[name], replies[name]
    np.testing.assert_allclose(np.array(replies[name]["rows"], dtype=np.float64), vectors, atol=1e-5)
    package, _, setting = name.partition(", ")
    note(results, versions, package, "vectors", setting and f"`{setting}`")


@pytest.mark.parametrize("name", RERANKERS)
def test_reranking(answers, results, name):
    replies, vectors, versions = answers
    assert "error" not in replies[name], replies[name]
    scores = np.array(replies[name]["rows"], dtype=np.float64)[:, 0]
    np.testing.assert_allclose(scores, vectors @ vectors[0], atol=1e-5)
    note(results, versions, name.removesuffix(" rerank"), "reranking", "")


def test_token_ids_of_another_vocabulary_are_refused_with_the_setting_that_mends_it(answers):
    assert SETTING in answers[0]["langchain-openai"]["error"]


def note(results, versions, name, what, setting):
    entry = results.setdefault(f"clients: {name}", {"versions": {}, "setting": setting, "groups": {}})
    entry["versions"] |= {package: version for package, version in versions.items() if package.startswith(name)}
    entry["groups"][what] = {what: "same"}
