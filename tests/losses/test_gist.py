import itertools

import pytest
import torch
from sentence_transformers.sentence_transformer.losses import gist_embed

from samesense.losses import gist, info_nce
from tests.references.gist import gist as reference

MARGINS = [(0.0, "absolute"), (0.2, "absolute"), (0.3, "relative")]
CONTRASTS = [(True, True), (True, False), (False, True), (False, False)]


def guided(vectors, n, negatives):
    """Return embeddings of anchors, positives and negatives, and a guide's of another dimension."""
    counts = (n, n, negatives)
    columns = [vectors(count, seed=seed) for seed, count in enumerate(counts)]
    return columns, [vectors(count, dim=3, seed=seed) for seed, count in enumerate(counts, 3)]


@pytest.mark.parametrize(("margin", "strategy"), MARGINS)
def test_equals_the_loops(vectors, margin, strategy):
    for n, negatives, temperature, contrasts in itertools.product([1, 2, 31], [0, 1, 40], [0.01, 0.05, 10], CONTRASTS):
        columns, guide = guided(vectors, n, negatives)
        expected = reference(
            *(column.tolist() for column in columns),
            [column.tolist() for column in guide],
            temperature,
            margin,
            strategy == "relative",
            contrasts,
        )
        value = gist(
            *columns,
            guide=guide,
            temperature=temperature,
            guide_margin=margin,
            margin_strategy=strategy,
            contrast_anchors=contrasts[0],
            contrast_positives=contrasts[1],
        )
        assert value.item() == pytest.approx(expected, rel=1e-11, abs=1e-11)


def peer(monkeypatch, columns, guide, **settings):
    """Return the loss of sentence-transformers on embeddings that are there already."""
    monkeypatch.setattr(gist_embed, "embed_columns", lambda model, features: list(model))
    loss = gist_embed.GISTEmbedLoss.__new__(gist_embed.GISTEmbedLoss)
    torch.nn.Module.__init__(loss)
    loss.model, loss.guide, loss.must_retokenize, loss.gather_across_devices = columns, guide, False, False
    loss.similarity_fct = torch.nn.CosineSimilarity(dim=-1)
    loss.cross_entropy_loss = torch.nn.CrossEntropyLoss()
    for name, value in settings.items():
        setattr(loss, name, value)
    return loss([{}] * len(columns), None)


@pytest.mark.parametrize("contrasts", CONTRASTS)
@pytest.mark.parametrize(("margin", "strategy"), MARGINS)
def test_value_and_gradient_are_those_of_sentence_transformers(
    monkeypatch, value_and_gradients, margin, strategy, contrasts
):
    g = torch.Generator().manual_seed(0)
    for count in (2, 3):
        columns = [torch.randn(24, 8, generator=g, dtype=torch.float64) for _ in range(count)]
        guide = [torch.randn(24, 4, generator=g, dtype=torch.float64) for _ in range(count)]
        options = {
            "temperature": 0.05,
            "margin_strategy": strategy,
            "contrast_anchors": contrasts[0],
            "contrast_positives": contrasts[1],
        }

        def theirs(*columns, guide=guide, options=options):
            return peer(monkeypatch, columns, guide, margin=margin, **options)

        def ours(*columns, guide=guide, options=options):
            return gist(*columns, guide=guide, guide_margin=margin, **options)

        for value, expected in zip(
            value_and_gradients(ours, *columns), value_and_gradients(theirs, *columns), strict=True
        ):
            torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-12)


def test_without_contrasts_and_with_a_guide_that_finds_nothing_it_is_info_nce(vectors):
    anchors, positives = torch.eye(9, dtype=torch.float64), vectors(9, dim=9)
    guide = [torch.eye(9), torch.eye(9)]
    value = gist(anchors, positives, guide=guide, contrast_anchors=False, contrast_positives=False)
    assert value.item() == pytest.approx(info_nce(anchors, positives).item(), rel=1e-12)


def test_the_same_text_is_no_negative():
    """The first two positives are one text: to the guide each is as similar to the other's anchor as the own one."""
    g = torch.Generator().manual_seed(0)
    guide = [torch.randn(2, 64, generator=g), torch.randn(1, 64, generator=g).repeat(2, 1)]
    guide[0][1] = guide[0][0]
    x = torch.randn(2, 8, generator=g)
    assert gist(x, x.flip(0), guide=guide).item() == 0.0


def test_what_it_refuses():
    x = torch.ones(3, 2)
    with pytest.raises(ValueError, match=r"matrices of \[3, 3\] rows; received \[3, 2\]"):
        gist(x, x, guide=[x, x[:2]])
    with pytest.raises(ValueError, match=r"matrices of \[3, 3\] rows; received \[3, 3, 3\]"):
        gist(x, x, guide=[x, x, x])
    with pytest.raises(ValueError, match="gist takes finite numbers; received guide"):
        gist(x, x, guide=[x, x / 0])
    with pytest.raises(ValueError, match="margin_strategy must be 'absolute' or 'relative'; received 'hard'"):
        gist(x, x, guide=[x, x], margin_strategy="hard")
    with pytest.raises(ValueError, match="guide_margin must be >= 0; received -1"):
        gist(x, x, guide=[x, x], guide_margin=-1)
