"""Several models in one server, asked for by name; reranking by one of them, as the clients of Cohere and Jina do."""

import threading

import numpy as np
import pytest

from samesense.errors import ConfigError
from samesense.inference.serve.services import Services
from tests.inference.serve.toy import Toy, calibrated, running, served, store_search, vector

DOCUMENTS = ["far away", "near by", "far away", "in the middle"]


def shared_letters(pairs):
    return np.array([float(len(set(first) & set(second))) for first, second in pairs])


def other_encode(texts):
    return np.stack([vector(f"other {text}")[:5] for text in texts])


def cosine(first, second):
    return float(vector(first).astype(float) @ vector(second).astype(float))


@pytest.fixture(scope="module")
def three():
    """A cross-encoder and two models of embeddings; the last has a collection."""
    models = (
        served(name="cross", score=shared_letters, calibration=calibrated()),
        served(name="small", encode=other_encode),
        served(name="large", search=store_search, threshold=0.5),
    )
    with running(*models) as it:
        yield it


def test_each_model_answers_to_its_name(three):
    for name, dim in (("small", 5), ("large", 16)):
        answer = three.post("/v1/embeddings", {"model": name, "input": "x"})[1]
        assert (answer["model"], len(answer["data"][0]["embedding"])) == (name, dim)
    pairs = {"pairs": [["one text", "another"]]}
    scores = {}
    for name in ("cross", "small", "large"):
        answer = three.post("/similarity", {**pairs, "model": name})[1]
        assert answer["model"] == name
        scores[name] = answer["data"][0]
    assert scores["cross"] == {"index": 0, "score": 4.0}
    assert scores["large"]["score"] == pytest.approx(cosine("one text", "another"), abs=1e-6)
    assert scores["small"]["score"] != scores["large"]["score"]
    assert ("yes" in scores["large"], "yes" in scores["small"]) == (True, False)
    assert three.post("/similarity", {**pairs, "model": "small", "calibrated": True})[0] == 404
    matrix = three.post("/similarity", {"texts": ["ab", "bc"], "model": "cross", "calibrated": True})[1]
    assert (matrix["scores"], matrix["calibrated"]) == ([[2.0, 1.0], [1.0, 2.0]], [[5.0, 5.0], [5.0, 5.0]])
    explained = three.post("/explain", {"text1": "ab cd", "text2": "abc", "model": "cross"})[1]
    assert [word["loss"] for word in explained["words1"]] == [2.0, 1.0]


def test_what_a_model_cannot_do_is_refused(three):
    for path, body in (("/v1/embeddings", {"input": "x"}), ("/search", {"query": "x"})):
        status, answer, _ = three.post(path, {**body, "model": "cross"})
        assert (status, answer["error"]["param"]) == (400, "model")
        assert "'cross' scores pairs of texts" in answer["error"]["message"]
    assert three.post("/search", {"query": "x", "model": "small"})[1]["error"]["code"] == "no_collection"
    status, answer, _ = three.post("/similarity", {"pairs": [["a", "b"]], "model": "gpt"})
    assert (status, answer["error"]["message"]) == (
        404,
        "This server has the models 'cross', 'small', 'large'; received 'gpt'.",
    )


def test_without_a_name_the_model_that_fits(three):
    assert three.post("/v1/rerank", {"query": "q", "documents": ["d"]})[1]["model"] == "cross"
    assert three.post("/search", {"query": "q"})[1]["model"] == "large"
    assert three.post("/similarity", {"pairs": [["a", "b"]]})[1]["model"] == "cross"


def test_all_are_listed_and_counted(three):
    assert [item["id"] for item in three.call("GET", "/v1/models")[1]["data"]] == ["cross", "small", "large"]
    models = three.call("GET", "/health")[1]["models"]
    assert [(item["name"], item["kind"], item.get("dimension"), item["search"]) for item in models] == [
        ("cross", "cross-encoder", None, False),
        ("small", "embeddings", 5, False),
        ("large", "embeddings", 16, True),
    ]
    three.post("/v1/rerank", {"query": "a b", "documents": ["c"]})
    text = three.call("GET", "/metrics", parsed=False)[1]
    assert 'samesense_batch_seconds_count{model="cross"}' in text
    assert 'samesense_tokens_total{model="small"}' in text


def test_models_compute_one_after_the_other_and_answers_are_not_mixed_up():
    busy, wrong = [], []

    def alone(encode):
        def encoded(texts):
            busy.append(1)
            if len(busy) > 1:
                wrong.append("two at once")
            rows = encode(texts)
            busy.pop()
            return rows

        return encoded

    def ask(server, number):
        name, expected = (("a", vector), ("b", lambda text: vector(f"b {text}")))[number % 2]
        for repeat in range(10):
            text = f"text {number} {repeat}"
            body = server.post("/v1/embeddings", {"model": name, "input": text})[1]
            if not np.allclose(body["data"][0]["embedding"], expected(text), atol=1e-6):
                wrong.append(text)

    slow = Toy(seconds=0.001)
    models = served(alone(slow), name="a"), served(alone(lambda texts: slow([f"b {text}" for text in texts])), name="b")
    with running(*models) as server:
        callers = [threading.Thread(target=ask, args=(server, number)) for number in range(8)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    assert not wrong


def test_any_name_is_taken_where_there_is_one_model_of_a_kind():
    with running(served(), any_name=True) as server:
        answer = server.post("/v1/embeddings", {"model": "text-embedding-3-small", "input": "x"})[1]
        assert answer["model"] == "toy"
        assert server.call("GET", "/v1/models/anything")[1]["id"] == "toy"
    with running(served(name="cross", score=shared_letters), served(), any_name=True) as server:
        assert server.post("/v1/embeddings", {"model": "text-embedding-3-small", "input": "x"})[1]["model"] == "toy"
        ranked = server.post("/v1/rerank", {"model": "rerank-v3.5", "query": "q", "documents": ["d"]})[1]
        assert ranked["model"] == "cross"
        assert server.post("/v1/embeddings", {"model": "cross", "input": "x"})[0] == 400
    with pytest.raises(ConfigError, match="received several of a kind"):
        Services([served(), served(name="other")], any_name=True)


def test_rerank_by_cosine_and_by_a_cross_encoder(server, three):
    request = {"query": "near", "documents": DOCUMENTS}
    results = server.post("/v1/rerank", request)[1]["results"]
    cosines = [cosine("near", text) for text in DOCUMENTS]
    assert [r["index"] for r in results] == sorted(range(4), key=lambda i: (-cosines[i], i))
    assert all(r["document"] == {"text": DOCUMENTS[r["index"]]} for r in results)
    np.testing.assert_allclose([r["relevance_score"] for r in results], sorted(cosines, reverse=True), atol=1e-6)
    for documents in (DOCUMENTS, [{"text": text} for text in DOCUMENTS]):  # Jina takes either
        answer = three.post("/v1/rerank", {**request, "documents": documents, "top_n": 3, "of another server": 1})[1]
        assert [(r["index"], r["relevance_score"]) for r in answer["results"]] == [(1, 4.0), (0, 2.0), (2, 2.0)]
        assert answer["results"][0]["document"] == {"text": "near by"}
        assert answer["usage"]["total_tokens"] == answer["meta"]["tokens"]["input_tokens"] == 4 + 2 + 2 + 2 + 3
    for path, wish in (("/v2/rerank", {}), ("/v1/rerank", {"return_documents": False})):
        assert "document" not in three.post(path, {**request, **wish})[1]["results"][0]


def test_a_cross_encoder_that_gives_nan_is_an_error():
    with running(served(score=lambda pairs: np.full(len(pairs), np.nan))) as server:
        status, answer, _ = server.post("/v1/rerank", {"query": "q", "documents": ["d"]})
    assert (status, answer["error"]["code"]) == (500, "model_error")


def test_cohere_s_own_clients():
    cohere = pytest.importorskip("cohere")
    with running(served(name="cross", score=shared_letters), keys=("a key",)) as server:
        address = f"http://127.0.0.1:{server.port}"
        request = {"model": "cross", "query": "near", "documents": DOCUMENTS, "top_n": 2}
        answer = cohere.ClientV2(api_key="a key", base_url=address).rerank(**request, max_tokens_per_doc=100)
        assert [(item.index, item.relevance_score) for item in answer.results] == [(1, 4.0), (0, 2.0)]
        assert (bool(answer.id), answer.meta.tokens.input_tokens) == (True, 13)
        older = cohere.Client(api_key="a key", base_url=address).rerank(**request, return_documents=True)
        assert [item.document.text for item in older.results] == ["near by", "far away"]
        with pytest.raises(cohere.UnauthorizedError):
            cohere.ClientV2(api_key="no key", base_url=address).rerank(**request)
