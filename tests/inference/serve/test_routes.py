"""A served model that tells queries from documents: each request is answered with the vectors that belong to it."""

import numpy as np
import pytest

from samesense.encoder.cosine import unit
from samesense.inference.collection.collection import Collection, Entry
from samesense.inference.collection.embedder import open_embedder
from samesense.inference.serve.opening import open_models
from tests.encoder.test_routes import QUERY, TEXTS, expected, prompted, routed
from tests.inference.serve.toy import running


@pytest.mark.parametrize("make", [routed, prompted], ids=["routes", "prompts"])
def test_queries_and_documents_have_vectors_of_their_own(make, tiny_trunk, tmp_path):
    from sentence_transformers import SentenceTransformer

    folder = str(make(tiny_trunk, tmp_path))
    theirs = SentenceTransformer(folder, device="cpu")
    expected_scores = pytest.approx(expected(theirs).tolist(), abs=1e-5)
    Collection.build(tmp_path / "ix", map(Entry, TEXTS), open_embedder(folder, "float32"))
    servings = open_models([f"m={folder}"], precision="float32", collection=tmp_path / "ix")
    with running(*servings) as server:
        answer = server.post("/search", {"query": QUERY, "top": 5})[1]["data"][0]["hits"]
        scores = {hit["id"]: hit["score"] for hit in answer}
        assert [scores[row] for row in range(5)] == expected_scores
        answer = server.post("/v1/rerank", {"query": QUERY, "documents": [*TEXTS, TEXTS[0]]})[1]["results"]
        scores = {item["index"]: item["relevance_score"] for item in answer}
        assert [scores[row] for row in range(5)] == expected_scores and scores[5] == scores[0]
        for task, encode in (
            ("query", theirs.encode_query),
            ("search_document", theirs.encode_document),
            (None, theirs.encode),
        ):
            data = server.post("/v1/embeddings", {"input": TEXTS, "input_type": task})[1]["data"]
            assert np.abs(np.array([item["embedding"] for item in data]) - unit(encode(TEXTS))).max() < 1e-5
