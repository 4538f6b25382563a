import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize
from sklearn.decomposition import PCA

import samesense
from samesense.encoder.assembly.build import build
from samesense.encoder.encode import encode
from samesense.encoder.maps import whitening as module
from samesense.encoder.maps.sink import is_causal, leave_out_sink
from samesense.encoder.maps.standardize import standardize
from samesense.encoder.maps.whitening import Whitening, append_whitening
from samesense.encoder.saving.storage import save
from samesense.errors import ConfigError, ModelError
from samesense.recipes.unsupervised.views import set_dropout
from tests.context.worlds import small_causal


@pytest.fixture(scope="module")
def rows():
    """3,000 correlated embeddings of 24 dimensions, far from the origin and of very different variances."""
    draw = np.random.default_rng(0)
    mixed = draw.normal(size=(3000, 24)) * np.logspace(0, -3, 24) @ draw.normal(size=(24, 24))
    return (mixed + 5 * draw.normal(size=24)).astype(np.float32)


def test_dimensions_are_uncorrelated_and_of_unit_variance(rows):
    white = Whitening.fit(rows).apply(rows)
    assert (white.shape, white.dtype) == ((3000, 24), np.float32)
    np.testing.assert_allclose(np.cov(white.T.astype(float)), np.eye(24), atol=1e-4)
    np.testing.assert_allclose(white.mean(axis=0), 0, atol=1e-4)


@pytest.mark.parametrize("dim", [None, 1, 7, 24])
def test_equals_scikit_learn_up_to_signs(rows, dim):
    fitted = Whitening.fit(rows, dim)
    expected = PCA(dim, whiten=True, svd_solver="full").fit(rows.astype(np.float64)).transform(rows.astype(np.float64))
    whitened = fitted.apply(rows)
    signs = np.sign((whitened * expected).sum(axis=0))
    np.testing.assert_allclose(whitened * signs, expected, atol=2e-4)
    assert (fitted.n, fitted.empty) == (3000, 0)


def test_cosines_equal_those_of_the_original_recipe(rows):
    """The recipe in its own terms: covariance, singular vectors, inverse roots, unit length, dot products."""
    wide = rows.astype(np.float64)
    left, roots, _ = np.linalg.svd(np.cov(wide.T))
    mapped = (wide - wide.mean(axis=0)) @ (left / np.sqrt(roots))[:, :10]
    mapped /= np.linalg.norm(mapped, axis=1, keepdims=True)
    whitened = Whitening.fit(rows, 10).apply(rows)
    whitened /= np.linalg.norm(whitened, axis=1, keepdims=True)
    np.testing.assert_allclose(whitened[:500] @ whitened[:500].T, mapped[:500] @ mapped[:500].T, atol=1e-4)


@pytest.mark.parametrize("sizes", [[3000], [1, 2, 2997], [1000, 0, 1999, 1]])
def test_blocks_of_any_size_give_the_same_map(rows, sizes, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", 700)
    ends = np.cumsum(sizes)
    blocks = (rows[end - size : end] for size, end in zip(sizes, ends, strict=True))
    whole = Whitening.fit(rows)
    fitted = Whitening.fit(blocks)
    np.testing.assert_allclose(fitted.mean, whole.mean, atol=1e-12)
    np.testing.assert_allclose(np.abs(fitted.apply(rows)), np.abs(whole.apply(rows)), atol=1e-4)


def test_empty_directions_are_dropped_and_counted(rows):
    dead = rows.copy()
    dead[:, [3, 11]] = 2.5
    dead[:, 5] = dead[:, 6]
    fitted = Whitening.fit(dead)
    assert (fitted.matrix.shape, fitted.empty) == ((24, 21), 3)
    np.testing.assert_allclose(np.cov(fitted.apply(dead).T.astype(float)), np.eye(21), atol=1e-4)
    few = Whitening.fit(rows[:10])
    assert (few.matrix.shape, few.empty) == ((24, 9), 15)
    assert np.isfinite(few.apply(rows)).all()


def test_more_dimensions_than_variance_is_an_error(rows):
    with pytest.raises(ConfigError) as error:
        Whitening.fit(rows[:10], 16)
    assert str(error.value) == (
        "Whitening can keep at most as many dimensions as have variance: 9 of 24, from 10 embeddings; received 16. "
        "Keep fewer, or fit on more texts."
    )
    with pytest.raises(ConfigError, match="at least one dimension; received 0"):
        Whitening.fit(rows, 0)


def test_refuses_what_has_no_variance_or_is_broken(rows):
    with pytest.raises(ModelError, match="at least two embeddings; received 1"):
        Whitening.fit(rows[:1])
    with pytest.raises(ModelError, match="at least two embeddings; received 0"):
        Whitening.fit([])
    with pytest.raises(ModelError, match="all 50 are alike"):
        Whitening.fit(np.repeat(rows[:1], 50, axis=0))
    broken = rows.copy()
    broken[2999, 3] = np.nan
    with pytest.raises(ModelError, match="row 2999 holds a NaN"):
        Whitening.fit(broken)
    with pytest.raises(ModelError, match="24 dimensions; received shape"):
        Whitening.fit(rows).apply(rows[:, :5])
    with pytest.raises(ModelError, match="one width; received 24 and 5"):
        Whitening.fit([rows, rows[:, :5]])
    with pytest.raises(ModelError, match=r"one embedding a row; received shape \(24,\)"):
        Whitening.fit([rows[0]])


@pytest.mark.parametrize("unit", [False, True])
def test_a_saved_model_gives_the_whitened_vectors_in_any_reader(tiny, sentences, tmp_path, unit):
    if unit:
        tiny.append(Normalize())
    tiny.prompts["ask"], tiny.default_prompt_name = "the old man ", "ask"
    vectors = encode(tiny, sentences, precision="float32")
    fitted = Whitening.fit(vectors, 16)
    expected = fitted.apply(vectors)
    if unit:
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    folder = save(append_whitening(tiny, fitted), tmp_path / "white")
    again = SentenceTransformer(str(folder), device="cpu")
    assert again.get_embedding_dimension() == 16
    np.testing.assert_allclose(again.encode(sentences), expected, atol=2e-4)
    np.testing.assert_allclose(encode(again, sentences, precision="float32"), expected, atol=2e-4)


def test_a_model_of_another_width_is_refused(tiny, rows):
    with pytest.raises(ModelError, match="embeddings of 24 dimensions; the model's have 32"):
        append_whitening(tiny, Whitening.fit(rows))


@pytest.mark.parametrize("n", [10, 60, 3000])
def test_the_shrunk_covariance_equals_scikit_learn(rows, n):
    from tests.references.next_words import whitened

    some = rows[:n].astype(np.float64)
    shrunk = Whitening.shrunk(rows[:n]).apply(rows[:40])
    expected = whitened(rows[:40].astype(np.float64), some)
    assert shrunk.shape == (40, 24)
    np.testing.assert_allclose(
        shrunk @ shrunk.T, expected @ expected.T, rtol=1e-3, atol=1e-3 * np.abs(expected).max() ** 2
    )
    with pytest.raises(ModelError, match="all 5 are alike"):
        Whitening.shrunk(np.ones((5, 3), dtype=np.float32))


def test_the_sink_of_a_language_model_is_left_out_for_every_reader(tmp_path, tiny_trunk):
    model = build(str(small_causal(tmp_path / "causal")), device="cpu")
    assert is_causal(model) and leave_out_sink(model)
    texts = ["one", "some more of it"]
    expected = []
    for text in texts:
        ids = model.tokenizer(f"</s>\n{text}", add_special_tokens=False)["input_ids"]
        with torch.inference_mode():
            expected.append(model[0].model(input_ids=torch.tensor([ids])).last_hidden_state[0, 2:].mean(dim=0).numpy())
    np.testing.assert_allclose(encode(model, texts, precision="float32"), expected, atol=1e-5)
    save(model, tmp_path / "saved")
    np.testing.assert_allclose(
        SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(texts), expected, atol=1e-5
    )
    assert not leave_out_sink(model)  # already whitened
    dropping = build(str(small_causal(tmp_path / "causal")), device="cpu").train()
    set_dropout(dropping, 0.5)
    assert is_causal(dropping)
    both_ways = build(str(tiny_trunk), device="cpu")
    assert not is_causal(both_ways) and not leave_out_sink(both_ways) and not both_ways.default_prompt_name


def test_wherever_a_language_model_is_whitened_its_sink_is_left_out(tmp_path, sentences):
    """The command, +whiten and standardize in training make the same vectors of one model, up to the shrinkage."""
    folder = str(small_causal(tmp_path / "causal"))
    samesense.whiten(folder, sentences, output=tmp_path / "whitened")
    expected = samesense.load(str(tmp_path / "whitened"), precision="float32").encode(sentences)
    mapped = samesense.load(f"{folder}+whiten", fit_texts=sentences, precision="float32")
    np.testing.assert_allclose(mapped.encode(sentences), expected, atol=1e-2)
    assert "prompt" in mapped.protocol
    model = build(folder, device="cpu")
    assert ", without its sink token: random pairs" in standardize(model, sentences, "whiten", precision="float32")
    sinkless = build(folder, device="cpu")
    assert leave_out_sink(sinkless)
    rows = encode(sinkless, sentences, precision="float32")
    distinct = rows[[sentences.index(text) for text in dict.fromkeys(sentences)]]
    np.testing.assert_allclose(
        encode(model, sentences, precision="float32"), Whitening.shrunk(distinct).apply(rows), atol=1e-3
    )
    assert samesense.load(folder, precision="float32").protocol.count("prompt") == 0


def test_evaluate_fits_on_texts(tiny_trunk, sentences, toy_pairs):
    rows = samesense.evaluate(f"{tiny_trunk}+whiten:8", toy_pairs / "test.tsv", texts=sentences, intervals=False)
    expected = samesense.load(f"{tiny_trunk}+whiten:8", fit_texts=sentences, precision="float32")
    assert rows[0].value == samesense.evaluate(expected, toy_pairs / "test.tsv", intervals=False)[0].value
    with pytest.raises(ConfigError, match="is fitted on unlabelled texts, and there are none"):
        samesense.evaluate(f"{tiny_trunk}+whiten:8", toy_pairs / "test.tsv")
