"""A model as a transformer of scikit-learn: in pipelines, grids and frames, pickled, and by its own checks."""

import pickle

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import samesense
from samesense.api import sentence_encoder
from samesense.errors import DataError, ModelError
from samesense.inference.models.load import load

TEXTS = ["the dog runs", "a cat sleeps", "music at noon", "the old man reads", "snow and rain", "über den Fluß"]
LABELS = ["animal", "animal", "other", "other", "other", "animal"]

TEXT_ONLY = "the checks that follow give numbers, and texts are taken alone"
EXPECTED_FAILURES = {}
"""Of scikit-learn's checks: name to reason. None is expected: for estimators of texts it has no more checks."""


@parametrize_with_checks([samesense.SentenceEncoder()], expected_failed_checks=lambda _: EXPECTED_FAILURES)
@pytest.mark.filterwarnings("ignore:Can't test estimator")
def test_it_passes_the_checks_of_scikit_learn(estimator, check, tiny_trunk, monkeypatch):
    monkeypatch.setattr("samesense.encoder.names.default_folder", lambda: tiny_trunk)
    check(estimator)


@pytest.mark.filterwarnings("ignore:Can't test estimator")
def test_as_many_checks_apply_as_to_a_vectorizer_of_scikit_learn():
    def names(estimator):
        return {check.func.__name__ for _, check in estimator_checks_generator(estimator)}

    assert names(samesense.SentenceEncoder()) >= names(CountVectorizer()) - {"check_estimators_unfitted"}


@pytest.fixture
def encoder(tiny_trunk):
    return samesense.SentenceEncoder(str(tiny_trunk), device="cpu", precision="float32")


def test_it_gives_the_vectors_of_the_model(encoder, tiny_trunk):
    model = load(str(tiny_trunk), device="cpu", precision="float32")
    rows = encoder.fit_transform(TEXTS)
    np.testing.assert_array_equal(rows, model.encode(TEXTS))
    assert rows.dtype == np.float32
    assert encoder.get_feature_names_out()[:2].tolist() == ["sentenceencoder0", "sentenceencoder1"]
    assert len(encoder.get_feature_names_out()) == 32
    np.testing.assert_array_equal(clone(encoder).transform(TEXTS), rows)  # without fit
    assert encoder.transform([]).shape == (0, 32)


def test_settings_are_those_of_encode(encoder):
    encoder.set_params(normalize=True, dim=4)
    assert encoder.get_params()["dim"] == 4
    rows = encoder.fit_transform(TEXTS)
    assert rows.shape == (6, 4)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-6)
    assert repr(clone(encoder)).startswith("SentenceEncoder(")


@pytest.mark.parametrize(
    "form",
    [
        tuple,
        np.array,
        pd.Series,
        iter,
        lambda texts: np.array(texts, dtype=object)[:, None],
        lambda texts: pd.DataFrame({"text": texts}),
        lambda texts: pd.Series(texts, dtype="string", index=range(7, 13)),
    ],
    ids=["tuple", "array", "series", "iterator", "column of an array", "frame", "string series"],
)
def test_a_column_comes_in_any_form(encoder, form):
    np.testing.assert_array_equal(encoder.transform(form(TEXTS)), encoder.transform(TEXTS))


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (["a dog", None, "a cat"], "row 1 .counted from 0. holds None, and 1 of 3 rows hold no text"),
        (pd.Series(["a dog", np.nan, None]), "row 1 .* holds nan, and 2 of 3 rows"),
        (pd.Series(["a", pd.NA], dtype="string"), "row 1 .* holds <NA>"),
        (["a", 3.5], r"row 1 .* holds 3\.5"),
        ("a dog", "received str. Put a single text into a list"),
        ({"text": ["a"]}, "received dict"),
        (np.array("a dog"), "received ndarray. Put a single text into a list"),
        (None, "received NoneType"),
        (np.array(TEXTS).reshape(2, 1, 3), "received an array of 3 dimensions"),
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), r"received 2 columns. Name it: frame\['text'\]"),
    ],
)
def test_what_is_no_column_of_texts_is_refused(encoder, column, message):
    for method in (encoder.fit, encoder.transform):
        with pytest.raises(DataError, match=message):
            method(column)


def test_texts_that_come_once_are_not_fitted(encoder):
    with pytest.raises(DataError, match="each read the texts, and a generator gives them once"):
        encoder.fit_transform(text for text in TEXTS)


def test_a_column_of_arrow_is_read(encoder):
    pa = pytest.importorskip("pyarrow")
    np.testing.assert_array_equal(encoder.transform(pa.array(TEXTS)), encoder.transform(TEXTS))


def test_a_cross_encoder_is_refused():
    scorer = load("python-score:tests.inference.test_pickling:score_lengths")
    with pytest.raises(ModelError, match="takes a model that has embeddings; python-score"):
        samesense.SentenceEncoder(scorer).fit(TEXTS)
    with pytest.raises(DataError, match="at least one text"):
        samesense.SentenceEncoder(scorer).fit([])


def test_frames_come_out_with_their_index(encoder):
    frame = pd.DataFrame({"text": TEXTS, "price": range(6)}, index=range(10, 16))
    rows = encoder.set_output(transform="pandas").fit_transform(frame["text"])
    assert rows.index.tolist() == frame.index.tolist()
    for column in ("text", ["text"]):
        columns = ColumnTransformer([("text", clone(encoder), column), ("price", StandardScaler(), ["price"])])
        mixed = columns.set_output(transform="pandas").fit_transform(frame)
        assert mixed.shape == (6, 33)
        assert mixed.columns[0] == "text__sentenceencoder0"


def test_a_grid_tries_models_and_opens_each_once(encoder, tiny_trunk, monkeypatch):
    opened_names = []

    def counting_load(name, **options):
        opened_names.append(name)
        return load(name, **options)

    monkeypatch.setattr(sentence_encoder, "load", counting_load)
    sentence_encoder._open_named.cache_clear()
    pipeline = make_pipeline(encoder, LogisticRegression())
    grid = {"sentenceencoder__model": [str(tiny_trunk), f"{tiny_trunk}+dim:8"], "logisticregression__C": [1, 10]}
    search = GridSearchCV(pipeline, grid, cv=2, error_score="raise").fit(TEXTS, LABELS)
    assert len(search.cv_results_["params"]) == 4
    assert sorted(opened_names) == sorted([str(tiny_trunk), f"{tiny_trunk}+dim:8"])
    assert set(search.predict(TEXTS)) <= set(LABELS)


def test_a_folder_that_was_written_anew_is_opened_anew(encoder, tiny_trunk, tmp_path):
    from samesense.encoder.assembly.build import build
    from samesense.encoder.saving.storage import save

    folder = save(build(str(tiny_trunk), device="cpu"), tmp_path / "m")
    encoder = encoder.set_params(model=str(folder))
    before = encoder.transform(TEXTS)
    save(build(str(tiny_trunk), pooling="cls", device="cpu"), tmp_path / "m", overwrite=True)
    assert not np.allclose(encoder.transform(TEXTS), before)


@pytest.mark.slow
def test_a_pipeline_is_loaded_from_a_file(encoder, tmp_path):
    pipeline = make_pipeline(encoder, LogisticRegression()).fit(TEXTS, LABELS)
    joblib.dump(pipeline, tmp_path / "p.joblib")
    for restored in (joblib.load(tmp_path / "p.joblib"), pickle.loads(pickle.dumps(pipeline))):
        np.testing.assert_array_equal(restored.predict_proba(TEXTS), pipeline.predict_proba(TEXTS))


@pytest.mark.slow
def test_a_grid_runs_in_several_processes(encoder):
    pipeline = make_pipeline(encoder, LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [1, 10]}, cv=2, n_jobs=2, error_score="raise")
    assert search.fit(TEXTS, LABELS).best_score_ >= 0
