"""Accuracy of a logistic regression on the embeddings of texts with classes."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score

import samesense
from samesense.data.tuples.convert import tuples_of_classes
from samesense.errors import DataError, ModelError
from samesense.evaluation.classes import FOLDS, ClassTask


def some_texts(count, classes=3, seed=0):
    drawn = np.random.default_rng(seed)
    labels = drawn.integers(classes, size=count)
    texts = [f"{number} {' '.join(str(value) for value in drawn.integers(50, size=4))}" for number in range(count)]
    return tuples_of_classes(texts, [f"class {label}" for label in labels], source="made", name="made")


class Telling(SimpleNamespace):
    """A model whose embeddings tell the classes of most texts."""

    def __init__(self, data, noise=0.8):
        drawn = np.random.default_rng(1)
        centres = drawn.normal(size=(len(data.class_names), 8))
        vectors = {
            text: centres[data.classes[text]] + noise * drawn.normal(size=8) * (1 + number % 3)
            for number, text in enumerate(data.anchors)
        }
        super().__init__(name="telling", embeds=True, protocol="made", seed=None)
        self.encode = lambda texts: np.array([vectors[text] for text in texts])
        self.fill = lambda texts: len(texts)


def test_held_out_texts_are_scored_as_scikit_learn_has_it():
    data = some_texts(90)
    model = Telling(data)
    rows = range(0, 90, 4)
    train, test = data.take(set(range(90)) - set(rows)), data.take(rows)
    tested = test.anchors
    outcome = ClassTask.split(train, test, "made").evaluate(model)
    vectors = model.encode(data.anchors)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    numbers = np.array([data.classes[text] for text in data.anchors])
    held = np.isin(data.anchors, tested)
    head = LogisticRegression(max_iter=1000).fit(vectors[~held], numbers[~held])
    expected = accuracy_score(numbers[held], head.predict(vectors[held]))
    (result,) = outcome.results
    assert 0.4 < expected < 1
    assert (result.metric, result.n, result.value) == ("accuracy", len(tested), pytest.approx(expected))
    assert result.low < expected < result.high
    assert "learnt from 67 other texts" in result.protocol
    (evidence,) = outcome.evidence
    assert evidence.examples == tested
    assert evidence.values.mean() == pytest.approx(expected)


def test_every_text_is_tested_once_in_folds_of_equal_shares():
    data = some_texts(103, classes=4)
    task = ClassTask.cross_validated(data, "made")
    assert sorted(row for fold in task._folds for row in fold) == list(range(103))
    numbers = np.array([data.classes[text] for text in data.anchors])
    counts = np.array([np.bincount(numbers[fold], minlength=4) for fold in task._folds])
    assert len(counts) == FOLDS
    assert (counts.max(axis=0) - counts.min(axis=0)).max() <= 1
    outcome = task.evaluate(Telling(data))
    assert outcome.results[0].n == 103
    assert sorted(outcome.evidence[0].examples) == sorted(data.anchors)


def test_a_model_that_tells_nothing_is_near_chance_and_one_that_tells_all_is_right():
    data = some_texts(300, classes=2)
    blind = Telling(data)
    drawn = np.random.default_rng(2)
    blind.encode = lambda texts: drawn.normal(size=(len(texts), 8))
    assert 0.35 < ClassTask.cross_validated(data, "made").evaluate(blind).results[0].value < 0.65
    assert ClassTask.cross_validated(data, "made").evaluate(Telling(data, noise=0.01)).results[0].value == 1


def test_what_has_no_accuracy_is_refused():
    data = some_texts(19)
    with pytest.raises(DataError, match="made: accuracy takes 20 texts to test, of two classes or more; got 19 of 3"):
        ClassTask.cross_validated(data, "made")
    scores_alone = SimpleNamespace(name="cross", embeds=False)
    with pytest.raises(ModelError, match="Suite classes needs embeddings, and cross only scores pairs"):
        ClassTask.cross_validated(some_texts(40), "made").evaluate(scores_alone)


def test_labels_that_repeat_too_little_are_no_classes():
    texts = [f"text {number}" for number in range(40)]
    for labels in ([str(number) for number in range(40)], ["again", "again", *map(str, range(38))]):
        data = tuples_of_classes(texts, labels, source="made", name="made")
        with pytest.raises(DataError, match="so that nothing can be learnt of the others"):
            ClassTask.cross_validated(data, "made")


def test_rows_that_are_left_out_are_said():
    texts = [f"text {number % 30}" for number in range(60)]
    labels = [str(number % 3) for number in range(60)]
    labels[-1] = "0"
    data = tuples_of_classes(texts, labels, source="made", name="made")
    task = ClassTask.cross_validated(data, "made")
    assert task.note == "29 texts of 3 classes; left out: 1 sentences of several classes, 29 repeated rows"


def test_a_model_is_evaluated_on_the_users_own_classes(tmp_path):
    path = tmp_path / "intents.csv"
    rows = [f"Where is parcel {number}?,delivery\nWhich card pays invoice {number}?,billing\n" for number in range(15)]
    path.write_text("text,label\n" + "".join(rows), encoding="utf-8")
    (result, *_) = samesense.evaluate("default", path, suites="classes")
    assert (result.task, result.dataset, result.metric, result.n) == ("classes", "intents.csv", "accuracy", 30)
    assert result.value > 0.9
