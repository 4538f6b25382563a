import numpy as np
import pytest

import samesense
from samesense.encoder.saving.storage import save
from samesense.errors import ModelError


@pytest.fixture
def model(tiny, tmp_path):
    save(tiny, tmp_path / "model")
    return samesense.load(str(tmp_path / "model"), precision="float32", device="cpu")


def test_three_lines(model, sentences):
    vectors = model.encode(sentences[:2], normalize=True)
    assert model.similarity(*sentences[:2]) == pytest.approx(float(vectors[0] @ vectors[1]), abs=1e-5)
    assert model.similarity("a dog", "a dog") == 1.0


def test_scores_are_those_of_the_pairs_in_order(model, sentences):
    pairs = list(zip(sentences[:10], sentences[5:15], strict=True))
    np.testing.assert_allclose(model.scores(pairs), [model.similarity(*pair) for pair in pairs], atol=1e-5)


def test_a_broken_model_is_named_not_scored(model):
    import torch

    with torch.no_grad():
        next(model.encoder.parameters()).fill_(float("nan"))
    with pytest.raises(ModelError, match="The embedding of 'a dog' holds a NaN or an infinity"):
        model.similarity("a dog", "a cat")
