import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from samesense.encoder.forward.batching import embed_columns, plan_chunks


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
