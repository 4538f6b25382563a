"""A server with a toy model, in a thread of its own, and a client of the standard library."""

import hashlib
import http.client
import json
import threading
import time
from contextlib import contextmanager

import numpy as np
import uvicorn

from samesense.errors import DataError
from samesense.inference.calibration.calibration import Calibration, Isotonic
from samesense.inference.collection.collection import SearchHit
from samesense.inference.serve.http.app import build_app
from samesense.inference.serve.service import Serving
from samesense.inference.serve.services import Services

DIM = 16
WORDS = "a man is eating someone has meal the train late plays violin".split()


def vector(text):
    """A unit vector that belongs to this text alone."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
    row = np.random.default_rng(seed).normal(size=DIM)
    return (row / np.linalg.norm(row)).astype(np.float32)


class Toy:
    """Encodes by :func:`vector`; remembers its batches; fails, gives NaN or takes long on demand.

    One that ``holds`` does nothing for texts that begin with held before it is set free, once and for all: whoever sets
    it free does not know whether they have come to it yet.
    """

    def __init__(self, seconds=0.0, patience=20.0, holds=False):
        self.batches, self.seconds, self.patience = [], seconds, patience
        self.free, self.holds = threading.Event(), holds
        if not holds:
            self.free.set()

    def __call__(self, texts):
        if not self.holds or any(text.startswith("held") for text in texts):
            self.free.wait(self.patience)
        time.sleep(self.seconds)
        self.batches.append(list(texts))
        if any("explode" in text for text in texts):
            raise RuntimeError("the toy exploded")
        return np.stack([3 * vector(text) * (np.nan if "nan" in text.split() else 1) for text in texts])


class WordTokens:
    """A word is a token; ids are places in WORDS."""

    longest = 12

    def count(self, texts):
        return [len(text.split()) for text in texts]

    def text(self, ids):
        if any(token >= len(WORDS) for token in ids):
            raise DataError("Token ids must be known.")
        return " ".join(WORDS[token] for token in ids)


STORE = ["A man is eating.", "The train is late.", "She plays the violin."]


class StoreSearch:
    """Search in STORE; metadata is the place of a text."""

    def search(self, vectors, *, top, where, words=None, texts=(), stop=None):
        if where and set(where) != {"place"}:
            raise DataError(f"There is no metadata of the name {sorted(where)[0]!r}.")
        matching = [
            (number, vector(text)) for number, text in enumerate(STORE) if not where or where["place"] == number
        ]
        answers = []
        for query in vectors:
            hits = [SearchHit(number, float(row @ query), STORE[number], {"place": number}) for number, row in matching]
            answers.append(sorted(hits, key=lambda hit: (-hit.score, hit.id))[:top])
        return answers


store_search = StoreSearch()


def served(encode=None, *, name="toy", **settings):
    """A model to be served: of embeddings, or a cross-encoder if there is a ``score``."""
    kind = {} if "score" in settings else {"encode": encode or Toy()}
    return Serving(name=name, tokens=WordTokens(), **kind, **settings)


def calibrated(**changes):
    """A calibration from cosines to 0-5 in a straight line."""
    fields = {
        "map": Isotonic((-1.0, 1.0), (0.0, 5.0)),
        "scale": (0.0, 5.0),
        "yes": 3.0,
        "thresholds": {"accuracy": 0.5} if changes.get("yes", 3.0) else {},
        "decide": "accuracy",
        "data": "made",
        "sha256": "",
        "n": 100,
        "protocol": "",
        "fingerprint": "",
        "errors": {"precision": 0.9},
    }
    return Calibration(**(fields | changes))


class Running:
    """Where a server listens, what answers there, and how to call it."""

    def __init__(self, service, port):
        self.service, self.port = service, port  # of several models, the traffic of all

    def call(self, method, path, body=None, *, raw=None, headers=None, parsed=True):
        """(status, answer, headers) of one request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        try:
            data = raw if raw is not None else None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            reply = connection.getresponse()
            content = reply.read()
            return reply.status, json.loads(content) if parsed else content.decode(), reply.headers
        finally:
            connection.close()

    def post(self, path, body, **fields):
        return self.call("POST", path, body, **fields)

    def embed(self, texts, **fields):
        return self.post("/v1/embeddings", {"model": "toy", "input": texts, **fields})


@contextmanager
def running(*servings, keys=(), labels=None, **options):
    """A server on a free port, stopped at the end."""
    services = Services(servings or [served()], **options)
    with listening(build_app(services, keys=keys, labels=labels), services) as server:
        yield server


@contextmanager
def listening(app, traffic):
    """An application on a free port, in a thread of its own, and how to call it; stopped at the end."""
    server = uvicorn.Server(
        uvicorn.Config(app, port=0, log_config=None, log_level="critical", timeout_graceful_shutdown=1)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.005)
    try:
        yield Running(traffic, server.servers[0].sockets[0].getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(10)
