import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers.pre_tokenizers import Metaspace

from samesense.encoder.forward import batching
from samesense.encoder.forward.batching import embed_columns, plan_chunks, tokenize_texts
from tests.conftest import WORDS


def cost(lengths, chunks, chunk_cost):
    return sum((end - start) * lengths[start] + chunk_cost for start, end in chunks)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=9), st.integers(0, 40))
@settings(deadline=None, max_examples=80)
def test_plan_is_the_cheapest_of_all(lengths, chunk_cost):
    lengths = sorted(lengths, reverse=True)
    n = len(lengths)
    best = min(
        cost(lengths, list(itertools.pairwise([0, *cuts, n])), chunk_cost)
        for k in range(n)
        for cuts in itertools.combinations(range(1, n), k)
    )
    chunks = plan_chunks(lengths, chunk_cost)
    assert [i for start, end in chunks for i in range(start, end)] == list(range(n))
    assert cost(lengths, chunks, chunk_cost) == best


@pytest.mark.parametrize("chunk_cost", [0, 16, 10**6, None])
def test_columns_come_back_as_if_each_went_alone(tiny, sentences, chunk_cost):
    tiny.eval()
    columns = [tiny.preprocess(sentences[:13]), tiny.preprocess(sentences[13:26])]
    expected = [tiny(dict(column))["sentence_embedding"] for column in columns]
    got = embed_columns(tiny, columns, chunk_cost=chunk_cost)
    for embedding, expected_column in zip(got, expected, strict=True):
        torch.testing.assert_close(embedding, expected_column, atol=1e-5, rtol=1e-5)


def test_gradients_are_those_of_separate_forwards(tiny, sentences):
    tiny.eval()  # no dropout: the same function
    columns = [tiny.preprocess(sentences[:8]), tiny.preprocess(sentences[8:16])]

    def gradient(embeddings):
        tiny.zero_grad()
        torch.nn.functional.cosine_similarity(*embeddings).sum().backward()
        return torch.cat([p.grad.flatten() for p in tiny.parameters() if p.grad is not None])

    separate = gradient([tiny(dict(column))["sentence_embedding"] for column in columns])
    torch.testing.assert_close(gradient(embed_columns(tiny, columns, chunk_cost=0)), separate, atol=2e-5, rtol=1e-4)


def test_left_padding(tiny_trunk, sentences):
    from samesense.encoder.assembly.build import build

    class Counted(torch.nn.Module):
        """Means the token ids under the mask: any misplaced token or mask shows."""

        def forward(self, features):
            ids = features["input_ids"]
            mask = features["attention_mask"]
            return {"sentence_embedding": ((ids * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True)).float()}

    model = build(str(tiny_trunk), device="cpu")
    for side in ("left", "right"):
        model.tokenizer.padding_side = side
        columns = [model.preprocess(sentences[:9]), model.preprocess(sentences[9:14])]
        expected = [Counted()(column)["sentence_embedding"] for column in columns]
        got = embed_columns(Counted(), columns, chunk_cost=0)
        assert all(
            torch.equal(embedding, expected_column) for embedding, expected_column in zip(got, expected, strict=True)
        )


def test_columns_that_are_not_padded_text_go_alone():
    calls = []

    def model(features):
        calls.append(features)
        return {"sentence_embedding": features["pixels"].float()}

    columns = [{"pixels": torch.ones(2, 3)}, {"pixels": torch.zeros(2, 3)}]
    assert [e.sum().item() for e in embed_columns(model, columns)] == [6.0, 0.0]
    assert len(calls) == 2


def long_texts(words):
    """Texts far longer than a model reads, of which the end is read or not."""
    return {
        "words": " ".join(words * 3000),
        "spaces": " \t\n  ".join(words * 3000),
        "one word": words[0] * 20_000,
        "a long word, then others": "x" * 20_000 + " " + " ".join(words * 3000),
        "Chinese": "我喜欢猫。" * 5000,
        "Chinese with spaces": "我喜欢 猫。 " * 5000,
        "characters that are dropped": "\u200b " * 20_000 + " ".join(words * 100),
        "combining marks": " ".join(f"{word} \u0308e\u0301" for word in words * 1000),
        "nothing": " " * 50_000,
        "short": " ".join(words[:5]),
    }


@pytest.mark.parametrize("max_length", [None, 5])
def test_a_head_of_a_long_text_has_the_tokens_that_the_whole_has(tiny, monkeypatch, max_length):
    texts = long_texts(WORDS)
    columns = [[text] for text in texts.values()] + [list(texts.values())]
    read = []
    preprocess = tiny.preprocess
    monkeypatch.setattr(tiny, "preprocess", lambda texts, **options: read.append(texts) or preprocess(texts, **options))
    features = [tokenize_texts(tiny, column, max_length) for column in columns]
    longest_head = batching.HEAD_LETTERS * (max_length or tiny.max_seq_length) + 100
    assert len(read[0][0]) < longest_head < len(texts["words"])
    monkeypatch.setattr(batching, "_heads", lambda model, texts, *_: list(texts))
    for column, shortened in zip(columns, features, strict=True):
        whole = tokenize_texts(tiny, column, max_length)
        assert whole.keys() == shortened.keys()
        assert all(torch.equal(whole[name], shortened[name]) for name in ("input_ids", "attention_mask"))


def test_a_long_text_is_cut_only_before_a_tokenizer_that_splits_at_spaces(tiny):
    text = long_texts(WORDS)["words"]
    longest = tiny.max_seq_length
    (head,) = batching._heads(tiny, [text], longest, None)
    assert text.startswith(f"{head} ") and len(head) < len(text)
    # Of a pair, the length of either text decides how much is read of the other.
    assert batching._heads(tiny, [(text, text)], longest, None) == [(text, text)]
    tiny.tokenizer.truncation_side = "left"
    assert batching._heads(tiny, [text], longest, None) == [text]
    tiny.tokenizer.truncation_side = "right"
    tiny.tokenizer.backend_tokenizer.pre_tokenizer = Metaspace(split=False)
    assert batching._heads(tiny, [text], longest, None) == [text]
