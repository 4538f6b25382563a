import numpy as np
import pytest

from samesense.errors import DataError, ModelError
from samesense.evaluation.geometry import GeometryTask
from tests.evaluation.toy import candidate, pair_data
from tests.models import made_model
from tests.references import geometry as reference

ROWS = [("a", "b", 4.5), ("c", "a", 4.0), ("b", "d", 5.0), ("e", "f", 1.0), ("a", "b", 4.2), ("g", "g", 4.8)]
VECTORS = {text: np.random.default_rng(ord(text)).normal(size=6) * 30 + 2 for text in "abcdefg"}


def lookup(texts, vectors=VECTORS):
    return np.array([vectors[text] for text in texts], dtype=np.float32).astype(float)


def embedder(encode=lookup):
    return made_model(encode=encode, protocol="float32", seed=2)


def figures(task, encode=lookup):
    return {row.metric: row for row in task.evaluate(embedder(encode)).results}


def test_figures_equal_plain_loops():
    rows = figures(GeometryTask(pair_data(ROWS)))
    population = lookup("abcdefg")
    unit = population / np.linalg.norm(population, axis=1, keepdims=True)
    positives = lookup("abag"), lookup("bdbg")
    assert rows["alignment"].value == pytest.approx(reference.alignment(*positives), abs=1e-12)
    assert rows["uniformity"].value == pytest.approx(reference.uniformity(population), abs=1e-12)
    assert rows["anisotropy"].value == pytest.approx(reference.anisotropy(population), abs=1e-12)
    assert rows["effective_rank"].value == pytest.approx(reference.effective_rank(unit), abs=1e-9)


def test_rows_say_positives_and_population():
    task = GeometryTask(pair_data(ROWS), dataset="stsb.dev", note="raw text")
    evaluated = task.evaluate(embedder())
    assert [row.metric for row in evaluated.results] == ["alignment", "uniformity", "anisotropy", "effective_rank"]
    assert evaluated.evidence == []
    rows = {row.metric: row for row in evaluated.results}
    assert rows["alignment"].protocol == (
        "float32; raw text; unit length; 4 positives: label above 4 on 0-5; mean squared distance"
    )
    assert rows["uniformity"].protocol.endswith("all 7 distinct sentences; t = 2, every pair of two of them")
    assert (rows["alignment"].n, rows["uniformity"].n, rows["effective_rank"].n) == (4, 7, 7)
    assert {(row.task, row.dataset, row.split, row.model, row.seed) for row in evaluated.results} == {
        ("geometry", "stsb.dev", "dev", "m", 2)
    }


def test_each_sentence_is_encoded_once():
    requests = []

    def encode(texts):
        requests.extend(texts)
        return lookup(texts)

    task = GeometryTask(pair_data(ROWS))
    task.evaluate(embedder(encode))
    assert requests == list(task.texts()) == ["a", "b", "c", "d", "e", "f", "g"]


@pytest.mark.parametrize(
    ("kind", "scale", "labels", "positives", "positive_rule"),
    [
        ("scored", (0, 5), [4, 4.1, 5, 0], 2, "above 4 on 0-5"),
        ("scored", (0, 1), [0.8, 0.81, 1, 0], 2, "above 0.8 on 0-1"),
        ("scored", (-1, 1), [0.6, 0.7, 1, -1], 2, "above 0.6 on -1-1"),
        ("binary", (0, 1), [1, 0, 1, 1], 3, "above 0.8 on 0-1"),
        ("nli", (0, 2), [2, 1, 0, 2], 2, "above 1.6 on 0-2"),
    ],
)
def test_the_cut_is_at_the_same_share_of_any_scale(kind, scale, labels, positives, positive_rule):
    rows = [("a", "b", labels[0]), ("c", "d", labels[1]), ("e", "f", labels[2]), ("b", "g", labels[3])]
    row = figures(GeometryTask(pair_data(rows, kind=kind, scale=scale)))["alignment"]
    assert row.n == positives
    assert f"{positives} positives: label {positive_rule}" in row.protocol


def test_refuses_data_without_positives_or_scale():
    low = [(first, second, min(label, 4.0)) for first, second, label in ROWS]
    with pytest.raises(DataError, match="no label of 6 is above 4 on the scale of 0 to 5"):
        GeometryTask(pair_data(low))
    with pytest.raises(DataError, match="which is unknown"):
        GeometryTask(pair_data(ROWS, scale=None))


@pytest.mark.parametrize(
    ("encode", "error", "text"),
    [
        (lambda texts: lookup(texts)[:-1], ModelError, "one row for each text, a matrix of 7 rows"),
        (lambda texts: lookup(texts, {**VECTORS, "c": np.full(6, np.nan)}), ModelError, "embedding of 'c' holds a NaN"),
        (lambda texts: lookup(texts, {**VECTORS, "d": np.zeros(6)}), ModelError, r"'d' is all zeros.*\(1 of 7"),
        (lambda texts: np.ones((7, 4)), DataError, "all 7 rows are the same"),
        (None, ModelError, "m only scores pairs"),
    ],
)
def test_refuses_broken_models(encode, error, text):
    with pytest.raises(error, match=text):
        GeometryTask(pair_data(ROWS)).evaluate(embedder(encode))


def test_the_score_is_not_asked():
    def never(first, second):
        raise AssertionError

    assert len(GeometryTask(pair_data(ROWS)).evaluate(candidate(never, encode=lookup)).results) == 4
