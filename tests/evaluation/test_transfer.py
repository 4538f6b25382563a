from collections import Counter

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score
from sklearn.model_selection import StratifiedKFold

from samesense.errors import DataError, ModelError
from samesense.evaluation.classifier import GRID, _early_stopping_rows, nested_folds, split_folds
from samesense.evaluation.transfer import TransferTask
from samesense.metrics import mean_interval
from tests.evaluation.toy import exact_minimum, logistic
from tests.models import made_model

DIM = 8


def vector(text):
    """A vector that depends on the text alone; the empty text has one of zeros."""
    seed = sum(ord(sign) * 31**position for position, sign in enumerate(text)) % 2**32
    return np.random.default_rng(seed).normal(size=DIM).astype(np.float32) * bool(text)


def embed(texts):
    return np.stack([vector(text) for text in texts])


def candidate(encode=embed):
    return made_model(lambda pairs: np.zeros(len(pairs)), encode, seed=5)


def sentences(count, classes=2, seed=0):
    """Texts, a few of them empty or given twice, and labels that follow their vectors with noise; sorted by class."""
    texts = [f"text {seed} {i // 2 if i < 20 else i}" for i in range(count - 2)] + ["", ""]
    source = np.random.default_rng(seed)
    labels = (embed(texts)[:, :classes] + source.normal(size=(count, classes))).argmax(axis=1)
    order = np.argsort(labels, kind="stable")
    return [texts[i] for i in order], labels[order].tolist()


def chosen(x, y, trials):
    means = [np.mean([logistic(x[a], y[a], l2).score(x[b], y[b]) for a, b in trials]) for l2 in GRID]
    return GRID[int(np.argmax(means))]


@pytest.fixture
def minimum(monkeypatch):
    """The folds and penalties are tested with a classifier that can be fitted again one at a time."""
    monkeypatch.setattr("samesense.evaluation.classifier.train_layers", exact_minimum)
    stopped = "samesense.evaluation.classifier._early_stopping_rows"
    monkeypatch.setattr(stopped, lambda fold: (fold.train, fold.test))  # the test needs no dev set


def with_ones(x):
    return np.hstack([x.astype(np.float64), np.ones((len(x), 1))])


def folds(y, count):
    return list(StratifiedKFold(count, shuffle=True, random_state=1111).split(y, y))


@pytest.mark.parametrize("classes", [2, 3])
def test_nested_folds_one_fit_at_a_time_give_the_same(classes, minimum):
    texts, labels = sentences(300, classes)
    judged = TransferTask.nested("toy", texts, labels, fast=True).evaluate(candidate())
    x = with_ones(embed(texts))
    y = np.array(labels)
    right = np.zeros(len(y))
    accuracies = []
    penalties = []
    for train, test in folds(y, 5):
        l2 = chosen(x[train], y[train], folds(y[train], 5))
        right[test] = logistic(x[train], y[train], l2).predict(x[test]) == y[test]
        accuracies.append(right[test].mean())
        penalties.append(l2)
    (row,), (proof,) = judged.results, judged.evidence
    assert row.value == pytest.approx(np.mean(accuracies), abs=1e-12)
    assert row.value > 1.2 / classes
    assert proof.values.tolist() == right.tolist()
    assert f"chosen L2: {', '.join(f'{l2:g} x {times}' for l2, times in sorted(Counter(penalties).items()))}" in (
        row.protocol
    )


def test_folds_of_unequal_size_count_the_same(minimum):
    texts, labels = sentences(303)  # folds of 61, 61, 61, 60 and 60 rows
    judged = TransferTask.nested("toy", texts, labels, fast=True).evaluate(candidate())
    (row,), (proof,) = judged.results, judged.evidence
    means = [proof.values[test].mean() for _, test in folds(np.array(labels), 5)]
    assert row.value == pytest.approx(np.mean(means), abs=1e-12) != pytest.approx(proof.values.mean(), abs=1e-9)


@pytest.mark.parametrize("has_dev", [True, False])
def test_parts_one_fit_at_a_time_give_the_same(has_dev, minimum):
    train, dev, test = (sentences(count, 3, seed) for seed, count in enumerate((200, 60, 150)))
    judged = TransferTask.split("toy", train, dev if has_dev else None, test).evaluate(candidate())
    (x, y), (dev_x, dev_y), (test_x, test_y) = ((with_ones(embed(a)), np.array(b)) for a, b in (train, dev, test))
    if has_dev:
        l2 = GRID[int(np.argmax([logistic(x, y, strength).score(dev_x, dev_y) for strength in GRID]))]
    else:
        l2 = chosen(x, y, folds(y, 10))
    predicted = logistic(x, y, l2).predict(test_x)
    (row,), (proof,) = judged.results, judged.evidence
    assert row.value == accuracy_score(test_y, predicted)
    assert row.n == 150
    assert f"chosen on {'dev' if has_dev else '10 folds of train'}; accuracy on test" in row.protocol
    assert row.protocol.endswith(f"chosen L2: {l2:g} x 1; 95 % bootstrap, 1000 samples")
    assert (row.low, row.high) == mean_interval(proof.values)
    assert proof.examples == test[0]
    assert proof.values.tolist() == (predicted == test_y).tolist()


def test_pairs_are_judged_by_difference_and_product(minimum):
    source = np.random.default_rng(3)

    def paired(count, seed):
        labels = source.integers(0, 2, count).tolist()
        seconds = [f"{i}" if label else f"other {i}" for i, label in enumerate(labels)]
        return [
            (f"{seed} {i % 50}", f"{seed} {i % 50}" if source.random() < 0.6 * label else seconds[i])
            for i, label in enumerate(labels)
        ], labels

    train = paired(150, 0)
    test = paired(120, 1)
    floats = [float(label) for label in test[1]]
    task = TransferTask.pairs("mrpc", train, (test[0], floats), fast=True)
    judged = task.evaluate(candidate())

    def features(pairs):
        u, v = (np.stack([vector(pair[side]) for pair in pairs]).astype(np.float64) for side in (0, 1))
        return with_ones(np.hstack([np.abs(u - v), u * v]))

    x = features(train[0])
    y = np.array(train[1])
    predicted = logistic(x, y, chosen(x, y, folds(y, 5))).predict(features(test[0]))
    rows = {row.metric: row for row in judged.results}
    assert rows["accuracy"].value == accuracy_score(test[1], predicted)
    assert rows["f1"].value == pytest.approx(f1_score(test[1], predicted), abs=1e-12)
    assert rows["accuracy"].value > 0.7
    assert "|u - v| and u * v of embeddings as they are" in rows["f1"].protocol
    (proof,) = judged.evidence
    assert (proof.metric, proof.examples) == ("accuracy", test[0])
    assert proof.values.tolist() == (predicted == np.array(test[1])).tolist()


def test_the_final_classifier_is_stopped_by_dev_or_by_a_twentieth_of_its_training_rows():
    y = np.arange(200) % 2
    for fold in nested_folds(y, 5):
        rows, held = _early_stopping_rows(fold)
        assert sorted([*rows, *held]) == fold.train.tolist()
        assert len(held) == 8
    (fold,) = split_folds(y, (100, 60, 40), 5)
    rows, held = _early_stopping_rows(fold)
    assert (rows.tolist(), held.tolist()) == (list(range(100)), list(range(100, 160)))


def test_rows_and_evidence_say_what_they_are():
    texts, labels = sentences(60)
    task = TransferTask.nested("mr", texts, ["bad" if label else "good" for label in labels], note="60 rows")
    judged = task.evaluate(candidate())
    (row,), (proof,) = judged.results, judged.evidence
    assert (task.suite, task.dataset, task.embeds) == ("transfer", "mr", True)
    assert (row.task, row.dataset, row.split, row.subset, row.metric) == ("transfer", "mr", "", "all", "accuracy")
    assert (row.model, row.seed, row.n) == ("m", 5, 60)
    assert row.seconds > 0
    assert row.protocol.startswith(
        "by rule; 60 rows; embeddings as they are; logistic regression by Adam with early stopping, as SentEval; "
        "L2 of 1e-05, 0.0001, 0.001, 0.01, bias included, chosen on 10 inner folds; mean of 10 outer folds' "
        "accuracies, not rounded; folds stratified, shuffled with seed 1111; chosen L2: "
    )
    assert (proof.task, proof.dataset, proof.metric, proof.model, proof.seed) == ("transfer", "mr", "accuracy", "m", 5)
    assert (proof.statistic, proof.labels, proof.examples) == ("mean", None, texts)
    assert set(proof.values) == {0.0, 1.0}


def test_each_text_is_encoded_once():
    texts, labels = sentences(60)
    calls = []

    def encode(batch):
        calls.append(list(batch))
        return embed(batch)

    task = TransferTask.nested("toy", texts, labels, fast=True)
    task.evaluate(candidate(encode))
    assert list(task.texts()) == texts
    assert calls == [list(dict.fromkeys(texts))]
    pairs = list(zip(texts, texts[::-1], strict=True))
    task = TransferTask.pairs("toy", (pairs, labels), (pairs[:1] + pairs[-1:], [0, 1]), fast=True)
    assert list(task.texts())[:4] == [*pairs[0], *pairs[1]]
    assert len(list(task.texts())) == 124


@pytest.mark.parametrize("classifier", ["senteval", "minimum"])
def test_a_constant_embedding_gets_the_share_of_the_larger_class(classifier):
    task = TransferTask.nested("toy", [str(i) for i in range(100)], [1] * 70 + [0] * 30)
    judged = task.evaluate(candidate(lambda texts: np.full((len(texts), 4), 0.5, dtype=np.float32)))
    assert judged.results[0].value == pytest.approx(0.7)
    assert judged.evidence[0].values.tolist() == [1.0] * 70 + [0.0] * 30


def test_refuses_embeddings_that_are_not_numbers():
    texts, labels = sentences(60)
    task = TransferTask.nested("toy", texts, labels)

    def broken(batch):
        rows = embed(batch)
        rows[list(batch).index("")] = np.nan
        return rows

    with pytest.raises(ModelError, match="The embedding of '' holds a NaN"):
        task.evaluate(candidate(broken))
    with pytest.raises(ModelError, match="one row for each text"):
        task.evaluate(candidate(lambda batch: embed(batch)[1:]))
    with pytest.raises(ModelError, match="m only scores pairs"):
        task.evaluate(candidate(None))


TEXTS = [str(i) for i in range(40)]
LABELS = [0, 1] * 20
PAIRS = [(text, text) for text in TEXTS]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: TransferTask.nested("d", TEXTS, LABELS[1:]), "d: .* of the data, got 39 labels and 40 examples"),
        (lambda: TransferTask.nested("d", [], []), "the data has no rows"),
        (lambda: TransferTask.nested("d", TEXTS, [1] * 40), "two classes or more .* every label is 1"),
        (lambda: TransferTask.nested("d", TEXTS, [0] * 29 + [1] * 11), "at least 12 rows for 10 outer .* 1 has 11"),
        (lambda: TransferTask.nested("d", TEXTS, [0] * 34 + [1] * 6, fast=True), "at least 7 rows for 5 outer"),
        (lambda: TransferTask.split("d", (TEXTS, LABELS), ([], []), (TEXTS, LABELS)), "dev has no rows"),
        (lambda: TransferTask.split("d", (TEXTS[:18], LABELS[:18]), None, (TEXTS, LABELS)), "10 rows in train for 10"),
        (lambda: TransferTask.split("d", (TEXTS, LABELS), None, (["x"], [2])), "label 2 of row 0 after train is not"),
        (lambda: TransferTask.pairs("d", (PAIRS, LABELS), (PAIRS, [0] * 40)), "of test pairs must be 0 and 1.* got 0"),
        (lambda: TransferTask.pairs("d", (PAIRS, [1, 2] * 20), (PAIRS, LABELS)), "of train pairs .* got 1, 2"),
    ],
)
def test_refuses_rows_that_cannot_be_judged(make, text):
    with pytest.raises(DataError, match=text):
        make()


def test_the_fewest_rows_of_a_class_are_enough():
    for fast, fewest in ((False, 12), (True, 7)):
        texts = [str(i) for i in range(2 * fewest)]
        task = TransferTask.nested("d", texts, [0, 1] * fewest, fast=fast)
        judged = task.evaluate(candidate())
        assert judged.results[0].n == len(judged.evidence[0].values) == 2 * fewest
    few = texts[:4], [0, 0, 0, 1]
    small = TransferTask.split("d", few, few, (texts, [0, 1] * 7))
    assert small.evaluate(candidate()).results[0].n == 14


def test_the_classifier_is_named_and_gives_the_same_figure_every_time():
    texts, labels = sentences(120)
    rows = [TransferTask.nested("toy", texts, labels, fast=True).evaluate(candidate()).results[0] for _ in range(2)]
    assert rows[0].value == rows[1].value
    assert rows[0].protocol == rows[1].protocol
    assert "by Adam with early stopping, as SentEval" in rows[0].protocol
