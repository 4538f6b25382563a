"""Which words made a score: the shares against plain sums over token vectors, and against scores without a word."""

import json

import numpy as np
import pytest

import samesense
from samesense.errors import ConfigError, DataError, ModelError
from samesense.inference.explain import explain
from tests.command import run_command
from tests.inference.made_vectors import encode
from tests.models import made_model

ONE, OTHER = "the old dog sleeps on the red road.", "a dog and the cat walks"


@pytest.fixture
def model(tiny):
    return samesense.load(tiny, precision="float32")


def by_hand(model, text):
    """Mean-pooled token vectors of a text, each divided by their number, with the tokens."""
    import torch

    features = model.encoder.preprocess([text])
    with torch.no_grad():
        vectors = model.encoder.eval()[0](features)["token_embeddings"][0].numpy().astype(np.float64)
    return vectors / len(vectors), model.encoder.tokenizer.convert_ids_to_tokens(features["input_ids"][0])


def test_shares_of_pairs_of_words_sum_to_the_cosine(model):
    explanation = explain(model, ONE, OTHER)
    (left, tokens1), (right, tokens2) = by_hand(model, ONE), by_hand(model, OTHER)
    lengths = np.linalg.norm(left.sum(axis=0)) * np.linalg.norm(right.sum(axis=0))
    table = left @ right.T / lengths
    assert explanation.by == "tokens"
    assert explanation.score == pytest.approx(model.similarity(ONE, OTHER), abs=1e-5)
    assert explanation.gap == pytest.approx(0, abs=1e-5)
    assert sum(word.share for word in explanation.words1) == pytest.approx(explanation.score, abs=1e-5)
    assert sum(word.share for word in explanation.words2) == pytest.approx(explanation.score, abs=1e-5)
    assert [word.text for word in explanation.words1] == [*ONE[:-1].split(), ".", "[marks]"]
    assert [ONE[word.start : word.end] for word in explanation.words1[:-1]] == [*ONE[:-1].split(), "."]
    row, column = tokens1.index("dog"), tokens2.index("dog")
    assert explanation.words1[2].share == pytest.approx(table[row].sum(), abs=1e-6)
    pair = next(pair for pair in explanation.pairs if (pair.first, pair.second) == ("dog", "dog"))
    assert pair.share == pytest.approx(table[row, column], abs=1e-6)
    assert explanation.words1[-1].share == pytest.approx(table[[0, -1]].sum(), abs=1e-6)


@pytest.mark.parametrize("by", ["tokens", "occlusion"])
def test_marked_pieces_are_the_texts_with_the_shares_of_their_words(model, by):
    text = f"  {ONE}\t"
    explanation = explain(model, text, OTHER, by=by)
    assert ["".join(piece for piece, _ in pieces) for pieces in explanation.marked()] == [text, OTHER]
    shares = {word.text: word.share for word in explanation.words2 if word.end > word.start}
    assert {piece: value for piece, value in explanation.marked()[1] if piece.strip()} == shares


def test_pieces_of_a_word_count_together_whatever_comes_after_pooling():
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Dense, Normalize, StaticEmbedding
    from tokenizers import Tokenizer, models, pre_tokenizers

    vocabulary = {"do": 0, "##gs": 1, "cat": 2, "[UNK]": 3}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    weights = np.random.default_rng(0).normal(size=(4, 6)).astype(np.float32)
    dense = Dense(6, 5, activation_function=__import__("torch").nn.Identity())
    encoder = SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_weights=weights), dense, Normalize()])
    model = samesense.load(encoder, precision="float32")
    explanation = explain(model, "dogs cat", "cat")
    w, b = (p.detach().numpy() for p in (dense.linear.weight, dense.linear.bias))
    first, second = weights[[0, 1, 2]] @ w.T + b, weights[[2]] @ w.T + b
    table = (first / 3) @ second.T / np.linalg.norm(first.mean(axis=0)) / np.linalg.norm(second)
    assert [word.text for word in explanation.words1] == ["dogs", "cat"]
    assert [word.share for word in explanation.words1] == pytest.approx([table[:2].sum(), table[2].sum()], abs=1e-5)
    assert explanation.score == pytest.approx(table.sum(), abs=1e-5)


def test_without_a_word_the_score_is_another(model):
    explanation = explain(model, ONE, OTHER, by="occlusion")
    assert explanation.score == pytest.approx(model.similarity(ONE, OTHER), abs=1e-6)
    without = model.similarity(ONE.replace("dog ", ""), OTHER)
    assert explanation.words1[2].share == pytest.approx(explanation.score - without, abs=1e-5)
    assert explanation.words2[1].share == pytest.approx(
        explanation.score - model.similarity(ONE, "a and the cat walks"), abs=1e-5
    )
    assert explanation.gap == pytest.approx(
        explanation.score - sum(word.share for word in explanation.words1), abs=1e-6
    )
    assert explanation.pairs == ()
    alone = explain(model, "dog", OTHER, by="occlusion")
    assert alone.words1[0].share == pytest.approx(alone.score)


def test_what_has_no_tokens_is_occluded_and_says_so():
    model = samesense.load(encode)
    explanation = explain(model, "one two", "two three")
    assert (explanation.by, explanation.why) == ("occlusion", "it is computed by a function")
    assert explanation.words1[0].share == pytest.approx(explanation.score - model.similarity("two", "two three"))
    with pytest.raises(ModelError, match="cannot be explained by its tokens: it is computed by a function"):
        explain(model, "one two", "two three", by="tokens")
    with pytest.raises(DataError, match="empty"):
        explain(model, " ", "a")


def test_another_pooling_is_occluded(tiny_trunk):
    explanation = explain(samesense.load(f"{tiny_trunk}?cls", precision="float32"), ONE, OTHER)
    assert explanation.by == "occlusion"
    assert "its embedding is no mean of token vectors" in explanation.why


def test_characters_of_languages_without_spaces_are_words():
    explanation = explain(samesense.load(encode), "今天好 ok", "天")
    assert [word.text for word in explanation.words1] == ["今", "天", "好", "ok"]


def test_the_command_prints_a_table_or_json(tiny_trunk, capsys):
    code, out, _ = run_command(capsys, "explain", tiny_trunk, ONE, OTHER, "--precision", "float32")
    assert code == 0
    lines = out.splitlines()
    assert lines[0].split()[0] == f"{samesense.load(str(tiny_trunk), precision='float32').similarity(ONE, OTHER):.4f}"
    assert "by the vectors of tokens" in lines[0]
    assert any(line.split()[1:] == ["dog", "dog"] for line in lines if len(line.split()) == 3)
    code, out, _ = run_command(capsys, "explain", tiny_trunk, ONE, OTHER, "--by", "occlusion", "--json")
    content = json.loads(out)
    assert (content["by"], content["texts"]) == ("occlusion", [ONE, OTHER])
    assert content["words1"][0].keys() == {"text", "start", "end", "share"}
    assert samesense.explain(str(tiny_trunk), ONE, OTHER, by="occlusion", precision="float32").by == "occlusion"
    code, _, err = run_command(capsys, "explain", tiny_trunk, ONE, "")
    assert (code, "one of them is empty" in err) == (2, True)


def test_an_origin_is_explained_by_its_contexts(monkeypatch, capsys):
    from samesense.context.origin.explain import Contribution, Explanation

    entry = Contribution(
        window=3, left=("Before.",), centre="x", right=("After.",), whose="both", first=1.0, second=2.0, share=0.25
    )

    class Opened:
        protocol = "contexts"

        def explain(self, first, second, *, top):
            assert (first, second, top) == ("a", "b", 2)
            return Explanation(sentences=("a", "b"), score=0.5, contexts=4, alike=[entry], apart=[])

    monkeypatch.setattr("samesense.inference.models.functions.open_origin", lambda folder, **options: Opened())
    code, out, _ = run_command(capsys, "explain", "origin:made", "a", "b", "--top", "2")
    assert (code, "Before. [...] After." in out) == (0, True)
    scored = made_model(lambda pairs: np.array([float(len(text)) for text, _ in pairs]), name="origin:made")
    monkeypatch.setattr("samesense.inference.models.load.load", lambda name, **options: scored)
    code, out, _ = run_command(capsys, "explain", "origin:made", "a cat", "b", "--by", "occlusion")
    assert code == 0 and "cat" in out and "Before." not in out


@pytest.mark.parametrize("model", ["default", "origin:nowhere"])
def test_fewer_than_one_of_a_side_are_refused(model):
    for top in (0, -2):
        with pytest.raises(ConfigError, match=f"`top` is a whole number of 1 or more; received {top}"):
            samesense.explain(model, ONE, OTHER, top=top)
