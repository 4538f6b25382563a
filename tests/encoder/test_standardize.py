"""Anisotropic start models are standardized by a linear layer that every reader of the folder applies."""

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from sklearn.covariance import ledoit_wolf

from samesense.encoder.encode import encode
from samesense.encoder.maps.standardize import standardize
from samesense.encoder.saving.storage import save
from samesense.metrics import anisotropy


def rows_of(model, texts):
    return encode(model, texts, precision="float32").astype(float)


@pytest.fixture
def narrow(tiny):
    """An encoder whose vectors have a large part in common."""
    weight = tiny[0].model.embeddings.LayerNorm.bias
    layers = [layer.output.LayerNorm.bias for layer in tiny[0].model.encoder.layer]
    for bias in (weight, *layers):
        bias.data += 3.0
    return tiny


def test_a_start_is_whitened(narrow, sentences, tmp_path):
    before = rows_of(narrow, sentences)
    message = standardize(narrow, sentences, "whiten", precision="float32")
    distinct = len(set(sentences))
    assert message == (
        f"start whitened by {distinct} training texts: random pairs of training texts have a mean cosine of "
        f"{anisotropy(rows_of_distinct(before, sentences)):.2f}"
    )
    after = rows_of(SentenceTransformer(str(save(narrow, tmp_path / "model")), device="cpu"), sentences)
    assert abs(anisotropy(after)) < 0.1
    fitted = rows_of_distinct(before, sentences)
    inverse = np.linalg.inv(ledoit_wolf(fitted)[0])  # x' inverse(S) y is the dot product of whitened rows
    deviations = before - fitted.mean(axis=0)
    np.testing.assert_allclose(after @ after.T, deviations @ inverse @ deviations.T, rtol=5e-3, atol=5e-2)


def rows_of_distinct(rows, texts):
    return rows[[texts.index(text) for text in dict.fromkeys(texts)]]


@pytest.mark.parametrize("method", ["mean", "auto"])
def test_a_narrow_start_loses_its_mean(narrow, sentences, method):
    before = rows_of(narrow, sentences)
    assert anisotropy(before) > 0.5
    assert "start minus its mean over" in standardize(narrow, sentences, method, precision="float32")
    expected = before - rows_of_distinct(before, sentences).mean(axis=0)
    np.testing.assert_allclose(rows_of(narrow, sentences), expected, atol=1e-4)


def test_a_wide_start_stays_as_it_is(narrow, sentences):
    standardize(narrow, sentences, "whiten", precision="float32")
    before = rows_of(narrow, sentences)
    modules = len(narrow)
    assert standardize(narrow, sentences, "auto", precision="float32").startswith("start as it is: random pairs")
    assert standardize(narrow, sentences, "none", precision="float32") == ""
    assert standardize(narrow, ["one"] * 9, "auto", precision="float32") == ""
    assert len(narrow) == modules
    np.testing.assert_array_equal(rows_of(narrow, sentences), before)
