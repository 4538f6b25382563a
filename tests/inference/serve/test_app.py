import base64

import numpy as np
import pytest

from samesense.errors import ConfigError
from samesense.inference.collection.collection import Collection
from samesense.inference.collection.embedder import Embedder
from samesense.inference.collection.entries import Entry
from samesense.inference.models.functions import FunctionEncoder
from samesense.inference.models.model import Model
from samesense.inference.serve import opening
from samesense.inference.serve.limits import Limits
from samesense.inference.serve.opening import read_keys
from tests.inference.serve.toy import DIM, STORE, Toy, calibrated, running, served, vector

TEXTS = ["A man is eating.", "Someone has a meal.", "A man is eating."]


def rows_of(answer):
    return np.array([item["embedding"] for item in answer["data"]], dtype=np.float32)


def facts(server):
    """What a server says of its one model."""
    (model_facts,) = server.call("GET", "/health")[1]["models"]
    return model_facts


def test_embeddings_of_a_text_and_of_texts(server):
    status, answer, headers = server.embed(TEXTS)
    assert status == 200, answer
    assert headers["content-type"] == "application/json"
    np.testing.assert_array_equal([item["index"] for item in answer["data"]], range(3))
    np.testing.assert_allclose(rows_of(answer), [vector(text) for text in TEXTS], atol=1e-6)
    assert answer["usage"] == {"prompt_tokens": 12, "total_tokens": 12}
    assert (answer["object"], answer["model"]) == ("list", "toy")
    np.testing.assert_array_equal(rows_of(server.embed(TEXTS[0])[1])[0], rows_of(answer)[0])


def test_base64_holds_the_same_bits(server):
    plain, packed = (server.embed(TEXTS, encoding_format=form)[1] for form in ("float", "base64"))
    unpacked = [np.frombuffer(base64.b64decode(item["embedding"]), "<f4") for item in packed["data"]]
    np.testing.assert_array_equal(unpacked, rows_of(plain))


def test_token_ids_are_the_text_that_has_them():
    with running(served(token_ids=True)) as server:
        single = rows_of(server.embed([0, 1, 2, 3])[1])
        many = rows_of(server.embed([[0, 1, 2, 3], [4, 5, 0, 6]])[1])
        assert "Token ids must be known" in server.embed([99])[1]["error"]["message"]
    np.testing.assert_allclose(many, [vector("a man is eating"), vector("someone has a meal")], atol=1e-6)
    np.testing.assert_array_equal(single[0], many[0])


def test_without_a_model_the_first_answers(server):
    assert server.post("/v1/embeddings", {"input": "x"})[1]["model"] == "toy"


@pytest.mark.parametrize(
    ("body", "status", "param", "says"),
    [
        ({"model": "toy"}, 400, "input", "Field required"),
        ({"model": "gpt", "input": "x"}, 404, "model", "one model, 'toy'; received 'gpt'"),
        ({"model": "/etc/passwd", "input": "x"}, 404, "model", "one model"),
        ({"model": "toy", "input": ""}, 400, "input", "text 0 is empty"),
        ({"model": "toy", "input": ["x", " "]}, 400, "input", "text 1 is empty"),
        ({"model": "toy", "input": []}, 400, "input", "received an empty list"),
        ({"model": "toy", "input": ["x", 3]}, 400, "input", "a list of numbers and texts"),
        ({"model": "toy", "input": [True]}, 400, "input", "a list of true or false"),
        ({"model": "toy", "input": [-1]}, 400, "input", "a list of numbers"),
        ({"model": "toy", "input": [1.5]}, 400, "input", "a list of numbers"),
        ({"model": "toy", "input": {"a": 1}}, 400, "input", "received an object"),
        ({"model": "toy", "input": None}, 400, "input", "received null"),
        ({"model": "toy", "input": [[]]}, 400, "input", "a list of lists of other values"),
        ({"model": "toy", "input": [99]}, 400, "input", "check_embedding_ctx_length=False"),
        ({"model": "toy", "input": [[1, 2], [3]]}, 400, "input", "serve --token-ids"),
        ({"model": "toy", "input": "\ud800"}, 400, "input", "half a surrogate pair"),
        ({"model": "toy", "input": "x", "encoding_format": "int8"}, 400, "encoding_format", "'float' or 'base64'"),
        ({"model": "toy", "input": "x", "dimensions": 8}, 400, "dimensions", "must be 16; received 8"),
        ({"model": "toy", "input": "x", "dimensions": 0}, 400, "dimensions", "greater than or equal to 1"),
        ({"model": "toy", "input": ["x"] * 2049}, 413, "input", "may hold 2048 texts; received 2049"),
        ({"model": "toy", "input": [[1]] * 2049}, 413, "input", "may hold 2048 texts; received 2049"),
        ({"model": "toy", "input": ["x", "y" * 40_000]}, 413, "input", "text 1 of 'input' has 40000"),
    ],
)
def test_refusals_have_openais_shape(server, body, status, param, says):
    got, answer, _ = server.post("/v1/embeddings", body)
    assert got == status, answer
    assert set(answer) == {"error"}
    assert set(answer["error"]) == {"message", "type", "param", "code"}
    assert answer["error"]["param"] == param
    assert answer["error"]["type"] == "invalid_request_error"
    assert says in answer["error"]["message"]


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "must be a JSON object, with the header Content-Type"),
        (b"{", "must be JSON"),
        (b"\xff\xfe\x00", ""),
        (b'"text"', "must be a JSON object"),
    ],
)
def test_what_is_not_json_is_refused(server, raw, says):
    status, answer, _ = server.call("POST", "/v1/embeddings", raw=raw)
    assert status == 400, answer
    assert says in answer["error"]["message"]


def test_unknown_places_and_methods(server):
    assert server.call("GET", "/v1/nothing")[0] == 404
    status, answer, headers = server.call("GET", "/v1/embeddings")
    assert answer["error"]["message"].endswith("Method Not Allowed")
    assert (status, headers["allow"]) == (405, "POST")
    assert server.call("GET", "/v1/models/../../etc/passwd")[0] == 404


def test_models_and_health(server):
    status, models, _ = server.call("GET", "/v1/models")
    assert (status, [model["id"] for model in models["data"]]) == (200, ["toy"])
    assert server.call("GET", "/v1/models/toy")[1] == models["data"][0]
    assert server.call("GET", "/v1/models/other")[0] == 404
    status, health, _ = server.call("GET", "/health")
    assert (status, health["status"]) == (200, "ok")
    (facts,) = health["models"]
    assert (facts["name"], facts["kind"], facts["dimension"], facts["search"]) == ("toy", "embeddings", DIM, True)


def test_dimensions_are_cut_only_where_the_model_was_trained_for_it():
    with running(served(shorten=True)) as server:
        short = rows_of(server.embed(TEXTS, dimensions=5)[1])
        assert server.embed(TEXTS, dimensions=17)[0] == 400
    with running(served(lambda texts: np.eye(3, dtype=np.float32)[[2] * len(texts)], shorten=True)) as server:
        status, answer, _ = server.embed("x", dimensions=2, encoding_format="base64")
    assert (status, answer["error"]["code"]) == (500, "model_error"), "no vector of NaN"
    expected = np.stack([vector(text)[:5] for text in TEXTS])
    np.testing.assert_allclose(short, expected / np.linalg.norm(expected, axis=1, keepdims=True), atol=1e-6)


def test_vectors_as_the_model_gives_them():
    with running(served(normalize=False)) as server:
        np.testing.assert_allclose(rows_of(server.embed(TEXTS)[1]), [3 * vector(text) for text in TEXTS], atol=1e-6)


def test_similarity_of_pairs(server):
    pairs = [("one text", "another text"), ("one text", "one text"), ("a third", "one text")]
    status, answer, _ = server.post("/similarity", {"pairs": pairs})
    assert status == 200, answer
    expected = [float(vector(a).astype(float) @ vector(b)) for a, b in pairs]
    np.testing.assert_allclose([item["score"] for item in answer["data"]], expected, atol=1e-6)
    assert answer["data"][1] == {"index": 1, "score": 1.0}


def test_what_the_similarity_loses_without_each_word(server):
    status, answer, _ = server.call("POST", "/explain", {"text1": "a man, 人", "text2": "train"})
    assert status == 200

    def cosine(first, second):
        return float(vector(first).astype(float) @ vector(second).astype(float))

    whole = cosine("a man, 人", "train")
    assert answer["score"] == pytest.approx(whole, abs=1e-6)
    assert [word["text"] for word in answer["words1"]] == ["a", "man", ",", "人"]
    less = [cosine(text, "train") for text in ("man, 人", "a, 人", "a man 人", "a man,")]
    assert [word["loss"] for word in answer["words1"]] == pytest.approx([whole - score for score in less], abs=1e-6)
    assert [word["loss"] for word in answer["words2"]] == pytest.approx([whole], abs=1e-6)
    assert server.call("POST", "/explain", {"text1": " ", "text2": "train"})[0] == 400


def test_texts_of_too_many_words_are_refused_before_any_is_left_out(server, monkeypatch):
    monkeypatch.setattr(
        "samesense.inference.serve.http.app.occluded", lambda texts: pytest.fail("it takes memory and time")
    )
    status, answer, _ = server.call("POST", "/explain", {"text1": "!" * 24_000, "text2": "train"})
    assert status == 413
    assert "2048 words and marks together; received 24001" in answer["error"]["message"]


def test_similarity_of_all_with_each_other(server):
    texts = ["one", "two", "three", "one"]
    answer = server.post("/similarity", {"texts": texts})[1]
    rows = np.stack([vector(text) for text in texts]).astype(float)
    np.testing.assert_allclose(answer["scores"], rows @ rows.T, atol=1e-6)
    assert answer["scores"][0][3] == 1.0
    assert set(answer) == {"object", "scores", "model", "usage"}


def test_calibrated_scores_and_yes_and_no_on_request(server):
    pairs = [("one text", "another text"), ("one text", "one text")]
    answer = server.post("/similarity", {"pairs": pairs, "calibrated": True, "yes_no": True})[1]
    assert answer["data"][1] == {"index": 1, "score": 1.0, "calibrated": 5.0, "yes": True}
    first = answer["data"][0]
    assert first["yes"] is (first["score"] >= 0.5)
    texts = ["one", "two", "one"]
    answer = server.post("/similarity", {"texts": texts, "calibrated": True})[1]
    np.testing.assert_allclose(answer["calibrated"], 2.5 * (np.array(answer["scores"]) + 1), atol=1e-12)
    answer = server.post("/similarity", {"texts": texts, "yes_no": True})[1]
    assert answer["yes"] == (np.array(answer["scores"]) >= 0.5).tolist()
    assert (facts(server)["calibration"], facts(server)["threshold"]) == (True, {"score": 0.5, "precision": 0.9})


def test_what_is_not_calibrated_is_refused_not_guessed():
    body = {"pairs": [["one", "two"]]}
    with running() as server:
        for wish in ("calibrated", "yes_no"):
            status, answer, _ = server.post("/similarity", {**body, wish: True})
            assert (status, answer["error"]["code"]) == (404, "no_calibration")
        assert facts(server)["calibration"] is False
    with running(served(calibration=calibrated(yes=None))) as server:
        assert server.post("/similarity", {**body, "calibrated": True})[0] == 200
        status, answer, _ = server.post("/similarity", {**body, "yes_no": True})
        assert (status, answer["error"]["code"], answer["error"]["param"]) == (404, "no_threshold", "yes_no")
        assert "has none: made has graded labels" in answer["error"]["message"]


def test_a_threshold_that_the_server_was_given_stands_in_every_answer():
    body = {"pairs": [["one text", "another text"], ["one text", "one text"]]}
    with running(served(threshold=0.9)) as server:
        pairs = server.post("/similarity", body)[1]["data"]
        assert [pair["yes"] for pair in pairs] == [pair["score"] >= 0.9 for pair in pairs] == [False, True]
        assert facts(server)["threshold"] == {"score": 0.9, "precision": None}
    fitted = calibrated(thresholds={"accuracy": 0.5})
    for threshold, precision in ((0.5, 0.9), (0.6, None)):
        with running(served(calibration=fitted, threshold=threshold)) as server:
            assert facts(server)["threshold"] == {"score": threshold, "precision": precision}


@pytest.mark.parametrize(
    ("path", "body", "status", "says"),
    [
        ("/similarity", {}, 400, "either 'pairs'"),
        ("/similarity", {"pairs": [], "texts": []}, 400, "either 'pairs'"),
        ("/similarity", {"pairs": []}, 400, "'pairs' must hold a pair; received an empty list"),
        ("/similarity", {"pairs": [["a", "b"]] * 2049}, 413, "received 2049"),
        ("/similarity", {"pairs": [["a", " "]]}, 400, "'pairs' must not hold an empty text"),
        ("/similarity", {"texts": ["a", "a", ""]}, 400, "'texts' must not hold an empty text; text 2 is empty"),
        ("/similarity", {"pairs": [["a"]]}, 400, "'pairs.0.1'"),
        ("/similarity", {"texts": ["x"] * 201}, 413, "1 to 200; received 201"),
        ("/similarity", {"texts": ["x"], "typo": 1}, 400, "'typo'"),
        ("/similarity", {"texts": ["x"], "model": "other"}, 404, "one model"),
        ("/v1/rerank", {"query": "q", "documents": []}, 400, "'documents' holds no text"),
        ("/v1/rerank", {"query": "", "documents": ["d"]}, 400, "'query' must not hold an empty text"),
        ("/v1/rerank", {"query": "q", "documents": ["d"], "top_n": 0}, 400, "'top_n'"),
        ("/v1/rerank", {"query": "q", "documents": [{"title": "d"}]}, 400, "'documents.0'"),
        ("/search", {"query": "q", "hybrid": True, "words": True}, 400, "received both"),
        ("/search", {"query": "q", "top": 1001}, 413, "'top' may be 1000"),
        ("/search", {"query": "q", "where": {"colour": "red"}}, 400, "no metadata of the name 'colour'"),
    ],
)
def test_refusals_of_the_other_routes(server, path, body, status, says):
    got, answer, _ = server.post(path, body)
    assert (got, says in answer["error"]["message"]) == (status, True), answer


def test_search(server):
    answer = server.post("/search", {"query": [STORE[1], STORE[2]], "top": 2})[1]
    assert [next(hit["id"] for hit in item["hits"]) for item in answer["data"]] == [1, 2]
    assert answer["data"][0]["hits"][0]["text"] == STORE[1]
    assert answer["data"][0]["hits"][0]["score"] == pytest.approx(1, abs=1e-6)
    only = server.post("/search", {"query": STORE[1], "where": {"place": 0}})[1]["data"][0]["hits"]
    assert [(hit["id"], hit["metadata"]) for hit in only] == [(0, {"place": 0})]
    with running() as bare:
        assert bare.post("/search", {"query": "x"})[1]["error"]["code"] == "no_collection"


def test_search_in_a_collection_that_grows_meanwhile(tmp_path):
    embedder = Embedder(Toy(), identity="toy")
    collection = Collection.build(
        tmp_path / "store", [Entry(text, metadata={"kind": "old"}) for text in STORE], embedder
    )
    with running(served(search=Collection.open(tmp_path / "store"))) as server:
        hits = server.post("/search", {"query": STORE[1], "top": 2})[1]["data"][0]["hits"]
        assert hits[0]["text"] == STORE[1]
        collection.add([Entry("A new text.", metadata={"kind": "new"})], embedder)
        hits = server.post("/search", {"query": "A new text.", "where": {"kind": "new"}})[1]["data"][0]["hits"]
        assert [(hit["text"], hit["metadata"]) for hit in hits] == [("A new text.", {"kind": "new"})]
        assert hits[0]["score"] == pytest.approx(1, abs=1e-6)
        assert server.post("/search", {"query": "x", "where": {"colour": "red"}})[0] == 400
        assert server.post("/search", {"query": "x", "where": "kind ="})[0] == 400
        hits = server.post("/search", {"query": "x", "where": "kind != old"})[1]["data"][0]["hits"]
        assert [hit["text"] for hit in hits] == ["A new text."]


def test_a_collection_built_anew_with_another_model_is_not_searched(tmp_path, monkeypatch):
    embedder = Embedder(Toy(), identity="toy")
    Collection.build(tmp_path / "store", [Entry(text) for text in STORE], embedder)
    model = Model(FunctionEncoder(Toy(), "toy", lambda: "toy"), name="toy")
    search, index = opening._open_search(tmp_path / "store", [model])
    assert index == 0
    with running(served(search=search)) as server:
        assert server.post("/search", {"query": STORE[1], "hybrid": True})[0] == 200
        other_embedder = Embedder(lambda texts: Toy()(texts)[:, ::-1].copy(), identity="other")
        Collection.build(tmp_path / "store", [Entry(text) for text in STORE], other_embedder, overwrite=True)
        status, answer, _ = server.post("/search", {"query": STORE[1]})
        assert (status, answer["error"]["code"]) == (503, "other_model")
        assert server.post("/search", {"query": STORE[1], "words": True})[0] == 200


def test_pairs_that_are_too_long_are_cut_and_counted_or_refused():
    request = {"query": "word " * 7, "documents": ["short", "word " * 8]}
    with running(served(score=lambda pairs: np.ones(len(pairs)))) as server:
        assert server.post("/v1/rerank", request)[0] == 200
        assert 'samesense_cut_texts_total{model="toy"} 1.0' in server.call("GET", "/metrics", parsed=False)[1]
    with running(served(score=lambda pairs: np.ones(len(pairs)), long="refuse")) as server:
        status, answer, _ = server.post("/v1/rerank", request)
    assert (status, answer["error"]["message"]) == (
        413,
        "The model reads 12 tokens; pair 1 of 'documents' has 15. Split it.",
    )


def test_hybrid_search_and_search_by_words(tmp_path):
    embedder = Embedder(Toy(), identity="toy")
    collection = Collection.build(tmp_path / "store", [Entry(text) for text in [*STORE, "late late"]], embedder)
    with running(served(search=collection)) as server:
        for options in ({"hybrid": True}, {"hybrid": True, "top": 1}, {"hybrid": True, "where": "kind IS NULL"}, {}):
            request = {"query": ["late trains", STORE[2]], **options}
            if "where" in options:
                assert server.post("/search", request)[0] == 400  # no text has this name
                continue
            answers = server.post("/search", request)[1]["data"]
            expected = collection.query(request["query"], embedder, **options)
            hits = [[(hit["id"], hit["score"]) for hit in item["hits"]] for item in answers]
            assert hits == [[(hit.id, pytest.approx(hit.score, abs=1e-6)) for hit in item] for item in expected]
        status, answer, _ = server.post("/search", {"query": "late", "words": True})
        assert [hit["id"] for hit in answer["data"][0]["hits"]] == [3, 1]
        assert (status, answer["usage"]["total_tokens"]) == (200, 0), "words need no model"
        assert server.post("/search", {"query": ["late", " "], "words": True})[0] == 400


def test_long_texts_are_cut_and_counted_or_refused():
    text = "word " * 13
    with running() as server:
        assert server.embed(text)[1]["usage"]["prompt_tokens"] == 12
        assert 'samesense_cut_texts_total{model="toy"} 1.0' in server.call("GET", "/metrics", parsed=False)[1]
    with running(served(long="refuse")) as server:
        status, answer, _ = server.embed(["short", text])
    assert (status, answer["error"]["message"]) == (
        413,
        "The model reads 12 tokens; text 1 of 'input' has 13. Split it.",
    )


def test_a_broken_vector_fails_its_own_request_only(server):
    status, answer, _ = server.embed(["fine", "nan here"])
    assert (status, answer["error"]["code"], answer["error"]["type"]) == (500, "model_error", "server_error")
    assert "The embedding of 'nan here' holds a NaN" in answer["error"]["message"]
    status, answer, _ = server.embed("explode")
    assert (status, answer["error"]["code"]) == (500, "defect")
    assert "exploded" not in answer["error"]["message"], "what went wrong inside is for the log"
    assert server.embed("fine")[0] == 200


def test_metrics(server):
    server.embed(["one two", "three"])
    server.call("GET", "/secret-path-of-a-caller", parsed=False)
    status, text, headers = server.call("GET", "/metrics", parsed=False)
    assert status == 200
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    assert 'samesense_requests_total{route="/v1/embeddings",status="200"}' in text
    assert 'samesense_requests_total{route="other",status="404"}' in text
    assert 'samesense_queue_tokens{model="toy"} 0.0' in text
    assert "samesense_requests_running 1.0" in text  # this one
    assert "secret" not in text


def test_limits_are_positive():
    with pytest.raises(ConfigError, match="limit max_texts must be positive; received 0"):
        Limits(max_texts=0)
    assert Limits(wait_ms=0).wait_ms == 0


def test_a_model_that_cannot_encode_stops_the_start():
    with pytest.raises(RuntimeError, match="exploded"), running(served(lambda texts: Toy()(["explode"]))):
        pass


def test_keys_come_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("SAMESENSE_API_KEY", raising=False)
    assert read_keys(None) == []
    monkeypatch.setenv("SAMESENSE_API_KEY", " a key ")
    assert read_keys(None) == ["a key"]
    monkeypatch.setenv("SAMESENSE_API_KEY", " ")
    with pytest.raises(ConfigError, match="would let everyone in"):
        read_keys(None)
    file = tmp_path / "keys.txt"
    file.write_text("one\n\ntwo\n")
    assert read_keys(file) == ["one", "two"]
    file.write_text("one\nschlüssel\n")
    with pytest.raises(ConfigError, match=r"must be of ASCII .* key 2 of .*keys\.txt is not"):
        read_keys(file)
    file.write_text("\n")
    with pytest.raises(ConfigError, match="There must be a key"):
        read_keys(file)
    with pytest.raises(ConfigError, match="Cannot read keys"):
        read_keys(tmp_path / "none.txt")
