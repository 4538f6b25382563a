"""Clients of other servers find their paths, forms and headers, unmodified where they are installed."""

import base64

import numpy as np
import pytest

from tests.inference.serve.toy import Toy, running, served, vector

TEXTS = ["a man is eating", "someone has a meal"]
ROWS = np.stack([vector(text) for text in TEXTS])
LONG = "word " * 13


@pytest.fixture(scope="module")
def short():
    with running(served(shorten=True)) as server:
        yield server


@pytest.mark.parametrize(
    "path",
    [
        "/v1/embeddings",
        "/v1/embeddings/",
        "/embeddings",
        "/embeddings/",
        "//v1/embeddings",
        "/v1//embeddings//",
        "/openai/v1/embeddings",
        "/openai/deployments/toy/embeddings?api-version=2024-10-21",
        "/openai/deployments/toy/embeddings/?api-version=2024-10-21",
    ],
)
def test_embeddings_of_openai_have_all_their_paths(short, path):
    status, answer, _ = short.post(path, {"input": TEXTS})
    assert status == 200, answer
    np.testing.assert_allclose([item["embedding"] for item in answer["data"]], ROWS, atol=1e-6)


def test_a_deployment_is_a_model(short):
    status, answer, _ = short.post("/openai/deployments/other/embeddings", {"input": TEXTS, "model": "toy"})
    assert (status, answer["error"]["code"]) == (404, "model_not_found")
    assert short.post("/openai/deployments/toy/embeddings", {"input": TEXTS, "model": "any"})[0] == 200


@pytest.mark.parametrize("path", ["/models", "/v1/models", "/v1/models/", "/openai/v1/models"])
def test_models(short, path):
    assert [model["id"] for model in short.call("GET", path)[1]["data"]] == ["toy"]


@pytest.mark.parametrize("path", ["/embed", "/embed/", "/"])
def test_embed_of_text_embeddings_inference(short, path):
    status, rows, _ = short.post(path, {"inputs": TEXTS, "normalize": True, "truncate": True, "prompt_name": None})
    assert status == 200, rows
    np.testing.assert_allclose(rows, ROWS, atol=1e-6)
    np.testing.assert_allclose(short.post(path, {"inputs": TEXTS[0]})[1], ROWS[:1], atol=1e-6)
    assert np.shape(short.post(path, {"inputs": TEXTS, "dimensions": 4})[1]) == (2, 4)


@pytest.mark.parametrize(
    ("path", "body", "param"),
    [
        ("/embed", {"inputs": TEXTS, "normalize": False}, "normalize"),
        ("/embed", {"inputs": TEXTS, "truncation_direction": "left"}, "truncation_direction"),
        ("/embed", {"inputs": TEXTS, "truncation_direction": "Left"}, "truncation_direction"),
        ("/embed", {"inputs": TEXTS, "prompt_name": "query"}, "prompt_name"),
        ("/embed", {"inputs": [[1, 2]]}, "inputs"),
        ("/embed", {"inputs": []}, "inputs"),
        ("/embed", {}, "inputs"),
        ("/embed", {"inputs": LONG, "truncate": False}, "inputs"),
        ("/rerank", {"query": "a", "texts": ["b"], "raw_scores": True}, "raw_scores"),
        ("/rerank", {"query": "a", "texts": [LONG], "truncate": False}, "texts"),
        ("/rerank", {"query": "a", "texts": [""]}, "texts"),
        ("/rerank", {"query": "a", "texts": []}, "texts"),
        ("/rerank", {"query": "a"}, None),
        ("/rerank", {"query": "a", "texts": ["b"], "documents": ["c"]}, None),
        ("/v1/embeddings", {"input": LONG, "truncate": False}, "input"),
        ("/v1/embeddings", {"input": LONG, "truncate": "NONE"}, "input"),
        ("/v1/embeddings", {"input": "a", "truncate": "START"}, "truncate"),
        ("/v1/embeddings", {"input": "a", "truncate": 1}, "truncate.bool"),
        ("/v1/embeddings", {"input": "a", "embedding_type": "binary"}, "embedding_type"),
        ("/v1/embeddings", {"input": "a", "late_chunking": True}, "late_chunking"),
        ("/v1/embeddings", {"input": "a", "normalized": False}, "normalized"),
        ("/v1/embeddings", {"input": "a", "output_dimension": 4}, "output_dimension"),
        ("/v1/embeddings", {"input": "a", "output_dtype": "int8"}, "output_dtype"),
        ("/v1/embeddings", {"input": [{"image": "a"}]}, "input"),
        ("/v1/embeddings", {"input": [{"text": "a", "image": "b"}]}, "input"),
        ("/v2/embed", {"texts": ["b"], "truncate": "START"}, "truncate"),
        ("/v2/embed", {"texts": [LONG], "truncate": "NONE"}, "texts"),
        ("/v2/embed", {"texts": ["b"], "embedding_types": ["int8"]}, "embedding_types.0"),
    ],
)
def test_what_would_be_answered_otherwise_is_refused(short, path, body, param):
    status, answer, _ = short.post(path, body)
    assert (status in (400, 413), answer["error"]["param"]) == (True, param), answer


def test_embeddings_in_the_forms_of_jina_and_voyage(short):
    jina = {"input": [{"text": text} for text in TEXTS], "task": "retrieval.query", "normalized": True}
    jina |= {"embedding_type": "float", "late_chunking": False, "truncate": True}
    voyage = {
        "input": TEXTS,
        "input_type": "query",
        "truncation": True,
        "output_dtype": "float",
        "output_dimension": None,
    }
    for body in (jina, voyage):
        status, answer, _ = short.post("/v1/embeddings", body)
        assert status == 200, answer
        np.testing.assert_allclose([item["embedding"] for item in answer["data"]], ROWS, atol=1e-6)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/embeddings", {"input": "a", "task": "retrieval.query"}),
        ("/v1/embeddings", {"input": "a", "input_type": "query"}),
        ("/v2/embed", {"texts": ["a"], "input_type": "search_query"}),
        ("/embed", {"inputs": "a", "prompt_name": "query"}),
    ],
)
def test_queries_are_told_from_documents_by_the_names_of_other_servers(path, body):
    tasks = []

    def encode(texts, task=None):
        tasks.append(task)
        return np.ones((len(texts), 2), dtype=np.float32)

    with running(served(encode, tells_tasks_apart=True)) as server:
        assert server.post(path, body)[0] == 200
    assert tasks[-1] == "query"


def test_a_request_says_whether_its_texts_may_be_cut():
    with running(served(long="refuse")) as server:
        assert server.post("/embed", {"inputs": LONG})[0] == 413
        assert server.post("/embed", {"inputs": LONG, "truncate": True})[0] == 200
    with running(served(normalize=False)) as server:
        np.testing.assert_allclose(server.post("/embed", {"inputs": TEXTS})[1], 3 * ROWS, atol=1e-5)
        np.testing.assert_allclose(server.post("/embed", {"inputs": TEXTS, "normalize": True})[1], ROWS, atol=1e-6)


def test_rerank_of_text_embeddings_inference_and_of_infinity(short):
    body = {"query": TEXTS[0], "texts": [TEXTS[1], TEXTS[0]], "truncate": True, "raw_scores": False}
    status, ranks, _ = short.post("/rerank", body)
    assert (status, [item["index"] for item in ranks], set(ranks[0])) == (200, [1, 0], {"index", "score"})
    assert ranks[0]["score"] == pytest.approx(1, abs=1e-6)
    assert short.post("/rerank", {**body, "return_text": True})[1][0]["text"] == TEXTS[0]
    body = {"query": TEXTS[0], "documents": [TEXTS[1], {"text": TEXTS[0]}], "top_n": 1, "model": "toy"}
    for path in ("/rerank", "/rerank/"):
        (best,) = short.post(path, body)[1]["results"]
        assert (best["index"], set(best)) == (1, {"index", "relevance_score"})
    assert short.post("/rerank", {**body, "return_documents": True})[1]["results"][0]["document"]["text"] == TEXTS[0]


def test_keys_are_bearers_or_those_of_azure():
    with running(served(), keys=("a key", "another")) as server:
        body = {"inputs": TEXTS}
        for headers in ({"api-key": "another"}, {"Authorization": "Bearer a key"}):
            assert server.post("/embed", body, headers=headers)[0] == 200
        for headers in ({"api-key": "wrong"}, {"api-key": ""}, {"Authorization": "a key"}, {}):
            for path in ("/", "//", "/embed", "/health/embed", "/v1/embeddings"):
                assert server.post(path, body, headers=headers)[0] == 401, path
        for path in ("/", "//", "/health", "/health/"):
            assert server.call("GET", path, parsed=False)[0] == 200


def test_the_client_of_azure():
    openai = pytest.importorskip("openai")
    with running(served(), keys=("a key",)) as server:
        address = f"http://127.0.0.1:{server.port}"
        for deployment in ({}, {"azure_deployment": "toy"}):
            with openai.AzureOpenAI(
                azure_endpoint=address, api_key="a key", api_version="2024-10-21", max_retries=0, **deployment
            ) as client:
                answer = client.embeddings.create(model="toy", input=TEXTS)
            np.testing.assert_allclose([item.embedding for item in answer.data], ROWS, atol=1e-6)


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_the_client_of_openai_at_any_base(short, suffix):
    openai = pytest.importorskip("openai")
    with openai.OpenAI(base_url=f"http://127.0.0.1:{short.port}{suffix}", api_key="none", max_retries=0) as client:
        answer = client.embeddings.create(model="toy", input=TEXTS)
        assert [model.id for model in client.models.list()] == ["toy"]
    np.testing.assert_allclose([item.embedding for item in answer.data], ROWS, atol=1e-6)


def test_the_client_of_cohere(short):
    cohere = pytest.importorskip("cohere")
    address = f"http://127.0.0.1:{short.port}"
    client = cohere.ClientV2(base_url=address, api_key="none")
    answer = client.embed(model="toy", texts=TEXTS, input_type="search_document", embedding_types=["float", "base64"])
    np.testing.assert_allclose(answer.embeddings.float_, ROWS, atol=1e-6)
    packed = [np.frombuffer(base64.b64decode(item), "<f4") for item in answer.embeddings.base64]
    np.testing.assert_allclose(packed, ROWS, atol=1e-6)
    old = cohere.Client(base_url=address, api_key="none")
    np.testing.assert_allclose(old.embed(model="toy", texts=TEXTS).embeddings, ROWS, atol=1e-6)
    assert [item.index for item in client.rerank(model="toy", query=TEXTS[0], documents=TEXTS[::-1]).results] == [1, 0]


def test_the_client_of_hugging_face(short, monkeypatch):
    hub = pytest.importorskip("huggingface_hub")
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)  # it asks this machine alone
    client = hub.InferenceClient(model=f"http://127.0.0.1:{short.port}")
    rows = client.feature_extraction(TEXTS, normalize=True, truncate=True)
    np.testing.assert_allclose(rows, ROWS, atol=1e-6)


def test_a_cross_encoder_reranks_by_default():
    def score(pairs):
        return np.array([float(len(document)) for _, document in pairs])

    with running(served(score=score, name="cross"), served(Toy(), name="toy")) as server:
        ranks = server.post("/rerank", {"query": "a", "texts": ["b", "ccc"]})[1]
        assert ranks == [{"index": 1, "score": 3.0}, {"index": 0, "score": 1.0}]
        assert np.shape(server.post("/embed", {"inputs": TEXTS})[1]) == np.shape(ROWS)
