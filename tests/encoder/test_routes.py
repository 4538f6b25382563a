"""Models with queries and documents, by a Router or by prompts, give the vectors of sentence-transformers."""

import numpy as np
import pytest

import samesense
from samesense.encoder.assembly.build import build
from samesense.encoder.cosine import unit
from samesense.encoder.saving.storage import save
from samesense.errors import ModelError
from tests.command import run_command
from tests.conftest import WORDS, random_bert

TEXTS = ["the cat sleeps", "a dog runs in the garden", "snow and rain", "the big red house by the river", "a bird"]
QUERY = "the dog runs"


def routed(tiny_trunk, folder, **options):
    """Save a model whose queries are read by another network, of other words and another length."""
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Router, Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    other_trunk = random_bert(folder / "other", WORDS[::-1])
    torch.manual_seed(7)
    trunks = [Transformer(str(path)) for path in (other_trunk, tiny_trunk)]
    torch.nn.init.normal_(trunks[0].model.embeddings.word_embeddings.weight)
    trunks[0].max_seq_length = 16
    query, document = ([trunk, Pooling(trunk.get_embedding_dimension(), "mean")] for trunk in trunks)
    router = Router.for_query_document(query_modules=query, document_modules=document, **options)
    return save(SentenceTransformer(modules=[router], device="cpu"), folder / "routed")


def prompted(tiny_trunk, folder):
    """Save a model with prompts for queries and documents."""
    model = build(str(tiny_trunk), device="cpu")
    model.prompts = {"query": "small road: ", "document": "the big book "}
    return save(model, folder / "prompted")


@pytest.fixture(params=[routed, prompted], ids=["routes", "prompts"])
def folder(request, tiny_trunk, tmp_path):
    return str(request.param(tiny_trunk, tmp_path))


@pytest.fixture
def theirs(folder):
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(folder, device="cpu")


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path


def expected(theirs):
    """The cosines of the query and the texts."""
    query = unit(theirs.encode_query([QUERY]))
    texts = unit(theirs.encode_document(TEXTS))
    return (query @ texts.T)[0]


@pytest.mark.parametrize("deterministic", [False, True])
def test_vectors_are_those_of_sentence_transformers(folder, theirs, deterministic):
    loaded = samesense.load(folder, precision="float32", deterministic=deterministic)
    assert loaded.tells_tasks_apart
    for task, encode in (("query", theirs.encode_query), ("document", theirs.encode_document), (None, theirs.encode)):
        assert np.abs(loaded.encode(TEXTS, task=task) - encode(TEXTS)).max() < 1e-5
    loaded.remember()
    assert np.abs(loaded.encode(TEXTS, task="query") - loaded.encode(TEXTS)).max() > 1e-3
    narrow = samesense.load(f"{folder}+dim:8", precision="float32")
    assert np.abs(narrow.encode(TEXTS, task="query") - unit(theirs.encode_query(TEXTS)[:, :8])).max() < 1e-5


def test_each_route_reads_by_its_own_length(tiny_trunk, tmp_path):
    loaded = samesense.load(str(routed(tiny_trunk, tmp_path)), precision="float32")
    assert (loaded.reading_for("query").longest, loaded.reading_for("document").longest) == (16, 64)
    assert len(loaded.windows(["cat " * 30], "query").texts) > 1 == len(loaded.windows(["cat " * 30], "document").texts)


def test_a_collection_holds_documents_and_is_asked_queries(folder, theirs, texts, tmp_path, capsys):
    import json

    assert (
        run_command(capsys, "index", "build", tmp_path / "ix", texts, "--model", folder, "--precision", "float32")[0]
        == 0
    )
    code, out, err = run_command(capsys, "index", "query", tmp_path / "ix", QUERY, "--top", "5", "--json")
    hits = {hit["text"]: hit["score"] for hit in map(json.loads, out.splitlines())}
    assert (code, "go by" in err) == (0, False)
    assert [hits[text] for text in TEXTS] == pytest.approx(expected(theirs).tolist(), abs=1e-5)


def test_the_first_list_of_a_match_is_queries(folder, theirs):
    matched = samesense.match([QUERY, *TEXTS], TEXTS, model=folder, precision="float32", threshold=-1.0, top=5)
    scores = {pair.match: pair.score for pair in matched.pairs if pair.row == 0}
    assert [scores[row] for row in range(5)] == pytest.approx(expected(theirs).tolist(), abs=1e-5)
    cosine = unit(theirs.encode_query(TEXTS[:1])) @ unit(theirs.encode_document(TEXTS[:1])).T
    same = next(pair.score for pair in matched.pairs if (pair.row, pair.match) == (1, 0))
    assert same == pytest.approx(float(cosine[0, 0]), abs=1e-5) and same < 0.9999


def test_a_rerank_looks_for_documents_with_a_query(folder, theirs, tiny_trunk):
    ranked = samesense.rerank(TEXTS, model=folder, cross=str(tiny_trunk), query=QUERY, top=5, precision="float32")
    cosines = {item.position: item.cosine for item in ranked}
    assert [cosines[row] for row in range(5)] == pytest.approx(expected(theirs).tolist(), abs=1e-5)


def test_encode_takes_the_task(folder, theirs, texts, tmp_path, capsys):
    for task, encode in (("query", theirs.encode_query), ("document", theirs.encode_document)):
        for name, flags in ((f"{task}.npy", ()), (f"{task}-shards", ("--shard-size", "3", "--workers", "1"))):
            words = ("encode", folder, texts, "--output", tmp_path / name, "--task", task, *flags)
            code, _, err = run_command(capsys, *words, "--precision", "float32")
            assert (code, "go by" in err) == (0, False)
            assert np.abs(samesense.read_vectors(tmp_path / name) - encode(TEXTS)).max() < 1e-5


def test_texts_of_no_task_go_by_a_route_that_is_said(tiny_trunk, tmp_path, texts, capsys):
    folder = routed(tiny_trunk, tmp_path)
    for words in (
        ("similarity", folder, "a cat", "a dog"),
        ("dedup", texts, "--model", folder),
        ("mine", texts, "--model", folder),
    ):
        code, _, err = run_command(capsys, *words)
        assert (code, err.count("these texts go by 'document'")) == (0, 1), words
    assert "route 'document' for texts that are neither" in samesense.load(str(folder)).protocol


def test_no_route_is_taken_where_none_is_the_default(tiny_trunk, tmp_path):
    folder = routed(tiny_trunk, tmp_path, default_route=None, allow_empty_key=False)
    with pytest.raises(ModelError, match="has none for texts of no task"):
        samesense.similarity(str(folder), "a cat", "a dog")


def test_what_needs_one_encoder_refuses_routes(tiny_trunk, tmp_path, toy_pairs, texts, capsys):
    folder = routed(tiny_trunk, tmp_path)
    for words in (
        ("export", folder, "--output", tmp_path / "out"),
        ("whiten", folder, texts, "--output", tmp_path / "out"),
        (
            "train",
            toy_pairs / "train.tsv",
            "--model",
            folder,
            "--dev",
            "none",
            "--max-steps",
            "1",
            "--output",
            tmp_path / "out",
        ),
        (
            "distil",
            texts,
            "--teacher",
            folder,
            "--student",
            "layers:1",
            "--max-steps",
            "1",
            "--output",
            tmp_path / "out",
        ),
    ):
        code, _, err = run_command(capsys, *words)
        assert (code, "has a Router with routes for queries and documents" in err) == (2, True), (words, err)
        assert not (tmp_path / "out" / "model").exists()


def test_an_exported_model_reads_its_prompts(tiny_trunk, tmp_path):
    from sentence_transformers import SentenceTransformer

    folder = prompted(tiny_trunk, tmp_path)
    samesense.export(str(folder), output=tmp_path / "exported")
    loaded = samesense.load(tmp_path / "exported", backend="onnx")
    theirs = SentenceTransformer(str(folder), device="cpu")
    for task, encode in (("query", theirs.encode_query), ("document", theirs.encode_document), (None, theirs.encode)):
        assert np.abs(loaded.encode(TEXTS, task=task) - encode(TEXTS)).max() < 1e-5


def test_a_given_prompt_is_read_before_all(tiny_trunk, tmp_path):
    loaded = samesense.load(str(prompted(tiny_trunk, tmp_path)), precision="float32", prompt="a cat ")
    assert not loaded.tells_tasks_apart
