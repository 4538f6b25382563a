"""What one request may hold, before and after it is parsed; and that types are those of JSON."""

import json

import pytest

from samesense.inference.serve.limits import Limits
from samesense.inference.serve.structure import Structure, measure
from tests.inference.serve.test_middleware import wait_until
from tests.inference.serve.toy import STORE, running, served, store_search

ANY = Structure(10**9, 10**9, 10**9)


@pytest.mark.parametrize(
    ("content", "values", "keys", "depth"),
    [
        (None, 1, 0, 0),
        ('a, [b], {"c": \\}', 1, 0, 0),
        ([1, 2, 3], 4, 0, 1),
        ({"a": ["x, y", {}], "[": {"b": 1}}, 7, 3, 3),
        ([[[]]], 4, 0, 3),
    ],
)
def test_structure_is_counted_outside_of_texts(content, values, keys, depth, monkeypatch):
    body = json.dumps(content).encode()
    for chunk in (1, 2, 3, 1000):
        monkeypatch.setattr("samesense.inference.serve.structure.CHUNK", chunk)
        assert measure(body, ANY) == (values, keys, depth)


def test_what_is_beyond_a_limit_names_its_option():
    body = {"input": ["x"] * 9, "user": "y"}
    bounds = {"max_values": 5, "max_keys": 1, "max_depth": 1, "max_body": 20, "max_texts": 8, "max_chars": 1}
    for name, bound in bounds.items():
        with running(limits=Limits(**{name: bound})) as server:
            status, answer, _ = server.post("/v1/embeddings", body if name != "max_chars" else {"input": "xy"})
            assert (status, answer["error"]["code"]) == (413, "too_large")
            assert f"samesense serve --{name.replace('_', '-')}" in answer["error"]["message"]
    with running(served(search=store_search), limits=Limits(max_where=20, max_top=1, max_matrix=1)) as server:
        for where in ("place = 1 OR place = 2", {"place": [1, 2, 3, 4, 5, 6]}):
            status, answer, _ = server.post("/search", {"query": "x", "where": where, "top": 1})
            assert (status, "--max-where" in answer["error"]["message"]) == (413, True), answer
        for path, form in (("/search", {"query": "x", "top": 2}), ("/similarity", {"texts": ["a", "b"]})):
            status, answer, _ = server.post(path, form)
            assert (status, "samesense serve --max-" in answer["error"]["message"]) == (413, True)


def test_bodies_together_are_bounded_and_small_ones_always_find_room():
    with running(limits=Limits(max_body=100_000, max_bodies=100_000)) as server:
        server.service.body_bytes = 50_000
        assert server.embed(["x"] * 500)[0] == 429, "a hundred kilobytes once they are parsed"
        status, answer, headers = server.embed(["x" * 30_000] * 3)
        assert (status, answer["error"]["code"], headers["retry-after"]) == (429, "busy", "1")
        assert server.embed(["x" * 1000] * 20)[0] == 200
        server.service.body_bytes = 0
        assert server.embed(["x" * 30_000] * 3)[0] == 200
        # The bytes are freed after the response has been sent.
        wait_until(lambda: server.service.body_bytes == 0)


@pytest.mark.parametrize("raw", [b"[" * 20_000, b'{"input": ' + b"[" * 1000 + b"]" * 1000 + b"}"])
def test_deep_bodies_are_refused_before_they_are_parsed(server, raw):
    status, answer, _ = server.call("POST", "/v1/embeddings", raw=raw)
    assert (status, "--max-depth" in answer["error"]["message"]) == (413, True)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "utf-32-be"])
def test_json_is_in_utf8(server, encoding):
    raw = json.dumps({"input": ["Ģ"]}, ensure_ascii=False).encode(encoding)
    status, answer, _ = server.call("POST", "/v1/embeddings", raw=raw)
    assert (status, "UTF-8" in answer["error"]["message"]) == (400, True)


def test_bytes_that_are_no_utf8_are_named(server):
    status, answer, _ = server.call("POST", "/v1/embeddings", raw=b'{"input": "caf\xe9"}')
    message = "The body must be JSON in UTF-8; received the byte 0xe9 at position 14."
    assert (status, answer["error"]["message"]) == (400, message)


@pytest.mark.parametrize(
    "raw", [b'{"input": "a", "input": "b"}', b'{"input": ["a"], "other": [{"x": 1, "input": 1, "input": 2}]}']
)
def test_a_name_that_stands_twice_is_refused(server, raw):
    status, answer, _ = server.call("POST", "/v1/embeddings", raw=raw)
    assert (status, answer["error"]["param"]) == (400, "input")
    assert answer["error"]["message"] == "The names of an object must differ; 'input' stands more than once. Send one."


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"input": "x", "dimensions": True}),
        ("/v1/embeddings", {"input": "x", "dimensions": 16.0}),
        ("/v1/embeddings", {"input": "x", "dimensions": "16"}),
        ("/v1/embeddings", {"input": "x", "model": 1}),
        ("/similarity", {"texts": ["a"], "calibrated": 1}),
        ("/similarity", {"texts": ["a"], "yes_no": "yes"}),
        ("/similarity", {"texts": ["a", 1]}),
        ("/similarity", {"pairs": [["a", True]]}),
        ("/similarity", {"pairs": [["a", "b", "c"]]}),
        ("/explain", {"text1": 1, "text2": "x"}),
        ("/v1/rerank", {"query": "x", "documents": ["a", 1]}),
        ("/v1/rerank", {"query": "x", "documents": ["a"], "top_n": True}),
        ("/v1/rerank", {"query": "x", "documents": ["a"], "top_n": 1.0}),
        ("/v1/rerank", {"query": "x", "documents": ["a"], "return_documents": "true"}),
        ("/search", {"query": "x", "top": "1"}),
        ("/search", {"query": "x", "top": True}),
        ("/search", {"query": "x", "hybrid": 0}),
        ("/search", {"query": ["x", 1]}),
    ],
)
def test_types_are_those_of_json(server, path, body):
    status, answer, _ = server.post(path, body)
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error"), answer


def without_id(answer):
    return {name: value for name, value in answer.items() if name != "id"} if isinstance(answer, dict) else answer


def test_null_is_a_field_that_is_not_given(server):
    forms = {
        "/v1/embeddings": {"input": "x"},
        "/similarity": {"pairs": [["a", "b"]]},
        "/explain": {"text1": "a", "text2": "b"},
        "/v1/rerank": {"query": "a", "documents": ["b"]},
        "/v2/rerank": {"query": "a", "documents": ["b"]},
        "/search": {"query": STORE[0]},
        "/rerank": {"query": "a", "documents": ["b"]},
        "/embed": {"inputs": "x"},
        "/v1/embed": {"texts": ["x"]},
        "/v2/embed": {"texts": ["x"]},
    }
    spec = server.call("GET", "/openapi.json")[1]
    assert set(forms) == {path for path, methods in spec["paths"].items() if "post" in methods}
    for path, body in forms.items():
        reference = spec["paths"][path]["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"]
        schema = spec["components"]["schemas"][reference.rpartition("/")[2]]
        fields, required = set(schema["properties"]), set(schema["required"]) if "required" in schema else set()
        without = {field: None for field in fields if field not in body}
        assert without
        with_null, plain = (server.post(path, form) for form in (body | without, body))
        assert with_null[0] == plain[0] == 200
        assert without_id(with_null[1]) == without_id(plain[1]), path
        for field in required:
            status, answer, _ = server.post(path, body | {field: None})
            assert (status, answer["error"]["param"].split(".")[0]) == (400, field)


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ({"title": "b"}, "an object with a 'text'; received an object with the fields \"title\""),
        ({"text": 1}, "an object with a 'text'"),
        ({"text": None}, "an object with a 'text'"),
        ({}, "received an empty object"),
        (None, "received null"),
        (["a"], "received a list of 1"),
        (1, "received 1"),
    ],
)
def test_documents_are_texts_or_objects_with_a_text(server, document, says):
    status, answer, _ = server.post("/v1/rerank", {"query": "a", "documents": ["x", document]})
    assert (status, answer["error"]["param"]) == (400, "documents.1")
    assert says in answer["error"]["message"]
    plain = server.post("/v1/rerank", {"query": "a", "documents": ["x", {"text": "y", "title": "z", "id": None}]})[1]
    assert sorted(item["document"]["text"] for item in plain["results"]) == ["x", "y"]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/similarity", {"texts": ["a"], "x" * 100_000: 1}),
        ("/similarity", {"texts": ["a"], "\ud800": 1}),
        ("/similarity", {"texts": ["a"], **{f"unknown {i}": i for i in range(9_000)}}),
        ("/similarity", {"texts": "x" * 100_000}),
        ("/similarity", {"texts": [["y"] * 40_000]}),
        ("/similarity", {"model": "m" * 100_000, "texts": ["a"]}),
        ("/v1/embeddings", {"input": "x", "encoding_format": "\ud800" * 50_000}),
        ("/v1/embeddings", {"input": {"x" * 100_000: 1}}),
        ("/v1/embeddings", {"input": "x", "dimensions": {"x" * 100_000: 1}}),
        ("/v1/rerank", {"query": "a", "documents": [{"x" * 100_000: 1}]}),
        ("/v1/rerank", {"query": "a", "documents": [1] * 49_000}),
        ("/search", {"query": "a", "where": {"n" * 60_000: 1}}),
        ("/search", {"query": "a", "where": "n" * 60_000 + " ="}),
        ("/search", {"query": "a", "where": {"\ud800": 1}}),
        ("/search", {"query": "a", "where": 10**400}),
        ("/search", {"query": {"a": 1}}),
    ],
)
def test_errors_are_short_whatever_the_request_holds(server, path, body):
    status, answer, _ = server.post(path, body)
    assert status in (400, 404, 413)
    assert len(json.dumps(answer)) < 1500
