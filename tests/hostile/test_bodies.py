"""Requests generated from the server's OpenAPI description and broken at random: no defect, no long error."""

import json
import random
import string

import pytest

from samesense.inference.collection.collection import Collection
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import Entry
from samesense.inference.serve.limits import Limits
from tests.hostile.conftest import figures, rounds
from tests.inference.serve.conftest import _no_network  # noqa: F401 - a server of this machine may be reached
from tests.inference.serve.toy import STORE, Toy, calibrated, running, served

TEXTS = [
    "a man is eating",
    "",
    " ",
    "\ud800",
    "\0",
    "é" * 50,
    "😡",
    "x" * 40_000,
    "'",
    '"',
    "\u2028",
    "a\tb",
    "-1",
]
VALUES = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2,
    1.0,
    0.5,
    -0.0,
    1e308,
    2**31,
    2**63,
    -(2**64),
    10**400,
    "1",
    "true",
    [],
    {},
    [[]],
    {"text": "x"},
    {"": None},
    float("nan"),
    float("inf"),
    [1, "a"],
    [["a"]],
    [None],
    {"a": {"b": [1]}},
]
CONDITIONS = [
    "kind = 0",
    "kind IN (0, 1)",
    "kind IS NULL",
    "NOT kind = 0",
    "(",
    "kind =",
    "other = 1",
    "kind LIKE '%'",
    "a=[[[[",
    {"kind": 0},
    {"kind": [0, 1]},
    {"kind": {"a": [1]}},
    {"other": 1},
    {},
    {"kind": float("nan")},
    {"\ud800": "\0"},
]
ALLOWED = {200, 400, 401, 404, 405, 408, 409, 413, 421, 422, 429}


class Bodies:
    """Makes bodies for the routes of a description; the same ones for the same seed."""

    def __init__(self, spec, seed):
        self.source = random.Random(seed)
        self.schemas = spec["components"]["schemas"]
        self.forms = {}
        for path, methods in spec["paths"].items():
            if "requestBody" in methods.get("post", {}):
                content = methods["post"]["requestBody"]["content"]["application/json"]["schema"]
                self.forms[path] = content

    def text(self):
        letters = string.ascii_letters + ' ,.é\u4e00😡\0\ud800"\\'
        return self.source.choice([*TEXTS, "".join(self.source.choices(letters, k=self.source.randint(0, 30)))])

    def value(self, schema, depth=0):
        """A value of a schema, nearly always."""
        if depth > 6 or self.source.random() < 0.06:
            return self.source.choice([*VALUES, self.text()])
        if "$ref" in schema:
            return self.value(self.schemas[schema["$ref"].rpartition("/")[2]], depth)
        for kind in ("anyOf", "oneOf"):
            if kind in schema:
                return self.value(self.source.choice(schema[kind]), depth)
        if "enum" in schema or "const" in schema:
            return self.source.choice(schema.get("enum") or [schema["const"]])
        return self.typed(schema, depth)

    def typed(self, schema, depth):
        kind = schema.get("type")
        if kind == "object":
            return self.fields(schema, depth)
        if kind == "array":
            items = schema.get("prefixItems")
            if items is not None:
                return [self.value(item, depth + 1) for item in items]
            return [self.value(schema.get("items", {}), depth + 1) for _ in range(self.source.randrange(5))]
        if kind == "integer":
            return self.source.choice([0, 1, 2, 3, 16, 1000, 10**6])
        if kind == "boolean":
            return self.source.random() < 0.5
        return None if kind == "null" else self.text()

    def fields(self, schema, depth):
        required = schema.get("required", [])
        body = {
            name: self.value(field, depth + 1)
            for name, field in schema.get("properties", {}).items()
            if self.source.random() < (0.95 if name in required else 0.3)
        }
        if "where" in body:
            body["where"] = self.source.choice([*CONDITIONS, body["where"]])
        if "model" in body and self.source.random() < 0.8:
            body["model"] = self.source.choice(["toy", "cross"])
        if self.source.random() < 0.05:
            body[self.text()] = self.source.choice(VALUES)
        return body

    def raw(self, path):
        """The bytes of a body, sometimes broken."""
        body = json.dumps(self.value(self.forms[path]), ensure_ascii=self.source.random() < 0.5)
        data = bytearray(body.encode(errors="surrogatepass"))
        while data and self.source.random() < 0.15:
            offset = self.source.randrange(len(data))
            change = self.source.randrange(4)
            if change == 0:
                data[offset] = self.source.randrange(256)
            elif change == 1:
                del data[offset : offset + self.source.randint(1, 20)]
            elif change == 2:
                data[offset:offset] = self.source.choice(
                    [b"[" * 200, b"1," * 200, b"\0", b'"', b"\\", b"{}", b"1e999", b"9" * 5000]
                )
            else:
                data = data[:offset]
        return bytes(data)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bodies") / "store"
    entries = [Entry(text, metadata={"kind": number}) for number, text in enumerate(STORE)]
    collection = Collection.build(folder, entries, Embedder(Toy(), identity="toy"))
    toy = served(search=collection, calibration=calibrated(thresholds={"accuracy": 0.5}), shorten=True, token_ids=True)
    cross = served(name="cross", score=lambda pairs: [len(document) for _, document in pairs])
    with running(toy, cross, limits=Limits(max_body=100_000, max_values=1000)) as it:
        yield it


def headers_of(source):
    headers = {"Content-Type": source.choice(["application/json"] * 9 + ["text/plain", "multipart/form-data", "", "x"])}
    if source.random() < 0.1:
        headers["Accept"] = source.choice(["text/html", "*/*", "\xff", ""])
    return headers


def test_random_bodies_are_answered_or_refused_shortly(server, caplog):
    spec = server.call("GET", "/openapi.json")[1]
    bodies = Bodies(spec, seed=52)
    statuses = {}
    count = rounds(short=600, long=100_000)
    with caplog.at_level("ERROR"):
        for _ in range(count):
            path = bodies.source.choice(list(bodies.forms))
            raw = bodies.raw(path)
            status, content, _ = server.call("POST", path, raw=raw, headers=headers_of(bodies.source), parsed=False)
            statuses[status] = statuses.get(status, 0) + 1
            assert status in ALLOWED, (path, raw[:300], content[:500])
            if status != 200:
                error = json.loads(content)["error"]
                assert set(error) == {"message", "type", "param", "code"}
                assert len(content) < 2000, (path, raw[:300])
    assert not caplog.records
    assert statuses[200] > count / 20
    assert server.call("GET", "/health")[0] == 200
    figures("bodies", {"requests": count, "statuses": statuses})
