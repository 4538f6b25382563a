"""Of equal scores the same text comes first, and then the lower row: everywhere by one rule."""

import numpy as np
import pytest

import samesense
from samesense.inference.collection.collection import Collection
from samesense.inference.collection.embedder import embedder_of
from samesense.inference.collection.entries import Entry
from samesense.inference.search.ties import TIE, groups, in_order, noise_of
from tests.command import run_command

FOLDED = ["Cat dog", "cat dog", "CAT dog", "cat DOG", "a bird sings"]


@pytest.fixture
def model(tiny_trunk):
    return samesense.load(str(tiny_trunk), precision="float32")


@pytest.mark.parametrize(
    ("scores", "same", "noise", "order"),
    [
        ([0.5, 0.9, 0.9, 0.1], [0, 0, 0, 0], TIE, [1, 2, 0, 3]),
        ([0.9, 0.9 + 2e-7, 0.9 + 1e-7], [0, 0, 0], TIE, [0, 1, 2]),
        ([0.9, 0.9 + 2e-7, 0.9 + 1e-7], [0, 0, 1], TIE, [2, 0, 1]),
        ([0.9, 0.9001, 0.9002], [1, 0, 0], TIE, [2, 1, 0]),
        ([0.9, 0.9001, 0.9002], [1, 0, 0], 4e-3, [0, 2, 1]),
        ([0.9, 0.9001, 0.9002, 0.9], [1, 0, 0, 1], 4e-3, [0, 3, 2, 1]),
        ([0.8, 0.9001, 0.9002, 0.9], [1, 0, 0, 1], 4e-3, [3, 2, 1, 0]),
        ([], [], TIE, []),
    ],
)
def test_the_order(scores, same, noise, order):
    ranked = in_order(np.array(scores), np.arange(len(scores)), np.array(same, dtype=bool), noise)
    assert ranked.tolist() == order


def test_a_chain_of_close_scores_is_no_one_group():
    scores = 0.9 - np.arange(6) * 0.6 * TIE
    assert groups(scores).tolist() == [0, 0, 1, 1, 2, 2]
    assert noise_of("cosine, mean pooling, bfloat16") > noise_of("float32") == TIE


def test_a_match_is_the_same_text_where_case_is_folded(model):
    assert [match.match for match in samesense.match(FOLDED, FOLDED, model=model).pairs] == [0, 1, 2, 3, 4]
    assert samesense.match(["caT dog"], FOLDED, model=model).pairs[0].match == 0
    top = samesense.match(["CAT dog", "cat DOG"], FOLDED, model=model, top=3).pairs
    assert [match.match for match in top] == [2, 0, 1, 3, 0, 1]


def test_one_to_one_swaps_no_identical_pairs(model):
    result = samesense.match(["cat dog", "Cat dog"], ["Cat dog", "cat dog"], model=model, one_to_one=True)
    assert [(match.row, match.match) for match in result.pairs] == [(0, 1), (1, 0)]
    result = samesense.match(["CAT DOG", "cat dog"], ["cat dog", "Cat dog"], model=model, one_to_one=True)
    assert [(match.row, match.match) for match in result.pairs] == [(0, 1), (1, 0)]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_query_finds_its_own_text_first(model, tmp_path, dtype):
    embedder = embedder_of(model, "tiny")
    texts = [*("cat dog" if i % 2 else "Cat Dog" for i in range(60)), "CAT dog", *FOLDED]
    collection = Collection.build(tmp_path / "ix", map(Entry, texts), embedder, dtype=dtype)
    for query in ("CAT dog", "Cat dog", "cat DOG", "cat dog"):
        hits = collection.query([query], embedder, top=3)[0]
        expected = [row for row, text in enumerate(texts) if text == query][:3]
        assert [hit.id for hit in hits[: len(expected)]] == expected
        assert [hit.id for hit in hits[len(expected) :]] == sorted(hit.id for hit in hits[len(expected) :])
    collection.delete([60])
    assert collection.query(["CAT dog"], embedder, top=1)[0][0].id == texts.index("CAT dog", 61)
    hits_of_two = collection.query(["cat dog"], embedder, top=2, exact=True)[0]
    assert [hit.id for hit in hits_of_two] == [1, 3]


def test_the_first_of_equals_answers_a_rerank(model, tiny_trunk, tmp_path, capsys):
    result = samesense.rerank(FOLDED, model=model, cross=model, query="cat DOG", top=2)
    assert [item.position for item in result] == [3, 0]
    (tmp_path / "texts.txt").write_text("\n".join(FOLDED) + "\n")
    _, out, _ = run_command(
        capsys, "rerank", tmp_path / "texts.txt", "--model", tiny_trunk, "--cross", tiny_trunk, "--query", "CAT dog"
    )
    assert out.splitlines()[0].endswith("CAT dog")


def test_a_representative_is_the_first_of_equals(model):
    result = samesense.dedup(["a bird sings", *FOLDED], model=model, threshold=0.999)
    assert [(removal.row, removal.kept) for removal in result.removed] == [(2, 1), (3, 1), (4, 1), (5, 0)]
