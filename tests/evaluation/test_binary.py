import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score

from samesense.errors import DataError, ModelError
from samesense.evaluation.binary import BinaryTask
from samesense.metrics import best_threshold, bootstrap_interval, mean_interval
from samesense.metrics.statistics import STATISTICS
from tests.evaluation.toy import candidate, pair_data


def binary(n, seed, source, prefix=""):
    rng = np.random.default_rng(seed)
    rows = [(f"{prefix}first {seed} {i}", f"second {i}", label) for i, label in enumerate(rng.random(n) < 0.3)]
    return pair_data(rows, kind="binary", scale=(0, 1), source=source)


TEST = binary(300, 0, "x/toy.test.tsv")
DEV = binary(200, 1, "x/toy.dev.tsv")


def noisy(*data, noise=0.8):
    """Return a model whose score is the label plus noise, rounded so that there are ties."""
    rng = np.random.default_rng(7)
    table = {
        pair: round(label + noise * rng.normal(), 1)
        for pairs_of_split in data
        for pair, label in zip(pairs_of_split.pairs(), pairs_of_split.labels, strict=True)
    }
    return candidate(lambda first, second: table[first, second])


def test_figures_equal_scikit_learn_with_the_threshold_of_dev():
    model = noisy(TEST, DEV)
    scores, dev_scores = model.scores(TEST.pairs()), model.scores(DEV.pairs())
    precision, accuracy, f1 = BinaryTask(TEST, DEV).evaluate(model).results
    assert [precision.metric, accuracy.metric, f1.metric] == ["average_precision", "accuracy", "f1"]
    assert precision.value == pytest.approx(average_precision_score(TEST.labels, scores), abs=1e-12)
    threshold = best_threshold(dev_scores, DEV.labels)
    assert accuracy.value == pytest.approx(np.mean((scores >= threshold) == np.array(TEST.labels)), abs=1e-12)
    threshold_f1 = best_threshold(dev_scores, DEV.labels, "f1")
    assert threshold_f1 < threshold
    assert f1.value == pytest.approx(f1_score(TEST.labels, scores >= threshold_f1), abs=1e-12)
    assert f"threshold {threshold:.4g} fitted for it on 200 pairs of toy.dev.tsv" in accuracy.protocol
    assert f"threshold {threshold_f1:.4g} fitted" in f1.protocol
    assert {row.n for row in (precision, accuracy, f1)} == {300}
    assert (accuracy.task, accuracy.dataset, accuracy.split) == ("binary", "toy.test.tsv", "test")


def test_the_threshold_is_not_that_of_the_test_pairs():
    model = noisy(TEST, DEV)
    shift = candidate(lambda first, second: model.scores([(first, second)])[0] + 100 * first.startswith("first 0"))
    accuracy = BinaryTask(TEST, DEV).evaluate(shift).results[1]
    assert accuracy.value == np.mean(TEST.labels)  # every test score lies above the threshold


def test_evidence_is_right_or_wrong():
    evaluated = BinaryTask(TEST, DEV).evaluate(noisy(TEST, DEV))
    scored, evidence, decided = evaluated.evidence
    accuracy = evaluated.results[1]
    assert (evidence.metric, evidence.statistic, evidence.labels) == ("accuracy", "mean", None)
    assert set(evidence.values) == {0.0, 1.0}
    assert np.mean(evidence.values) == accuracy.value
    assert (accuracy.low, accuracy.high) == mean_interval(evidence.values)
    assert evidence.examples == TEST.pairs()
    precision, _, f1 = evaluated.results
    assert (scored.statistic, decided.statistic, decided.has_scores) == ("average_precision", "f1", False)
    for row, behind in ((precision, scored), (f1, decided)):
        assert STATISTICS[behind.statistic].value(behind.values, behind.labels) == pytest.approx(row.value, abs=1e-12)
        assert (row.low, row.high) == bootstrap_interval(behind.values, behind.labels, behind.statistic)
        assert row.low < row.value < row.high


def test_without_dev_pairs_only_average_precision():
    task = BinaryTask(TEST, note="raw text")
    evaluated = task.evaluate(noisy(TEST))
    (row,) = evaluated.results
    positive = f"{int(sum(TEST.labels))} of 300 positive"
    protocol = "no threshold was fitted, for there are no dev pairs; 95 % bootstrap, 1000 samples"
    assert row.protocol == f"by rule; raw text; {positive}; {protocol}"
    assert [behind.metric for behind in evaluated.evidence] == ["average_precision"]
    assert set(task.texts()) == {text for pair in TEST.pairs() for text in pair}


def test_texts_include_those_of_dev():
    assert {text for pair in [*TEST.pairs(), *DEV.pairs()] for text in pair} == set(BinaryTask(TEST, DEV).texts())


def test_a_constant_model_gets_the_share_of_positives_and_of_the_larger_class():
    precision, accuracy, f1 = BinaryTask(TEST, DEV).evaluate(candidate(lambda a, b: 0.3)).results
    positive_share = np.mean(TEST.labels)
    assert precision.value == pytest.approx(positive_share)
    assert accuracy.value == pytest.approx(positive_share if np.mean(DEV.labels) > 0.5 else 1 - positive_share)
    assert f1.value == pytest.approx(2 * positive_share / (1 + positive_share))


def test_shared_pairs_are_counted_and_all_of_them_refused():
    first = TEST.take(range(150))
    rows = BinaryTask(TEST, first).evaluate(noisy(TEST)).results
    assert rows[1].protocol.endswith("which hold 150 of the test pairs; 95 % bootstrap, 1000 samples")
    with pytest.raises(DataError, match="fitted on other pairs than the test pairs"):
        BinaryTask(TEST, TEST)


def test_refuses_other_labels_and_scores():
    with pytest.raises(DataError, match=r"toy.test.tsv: a binary task needs .* labels\[1\] is 3"):
        BinaryTask(pair_data([("a", "b", 1), ("a", "c", 3)]))
    with pytest.raises(DataError, match=r"toy.dev.tsv: a binary task needs .* 2 positives among 2"):
        BinaryTask(TEST, pair_data([("a", "b", 1), ("a", "c", 1)], source="toy.dev.tsv"))
    with pytest.raises(ModelError, match="pair 0 is nan"):
        BinaryTask(TEST, DEV).evaluate(candidate(lambda a, b: np.nan))


def test_a_perfect_model_has_no_interval_and_says_so():
    sure = noisy(TEST, DEV, noise=0.0)
    rows = BinaryTask(TEST, DEV).evaluate(sure).results
    assert [(row.value, row.low) for row in (rows[0], rows[2])] == [(1.0, None)] * 2
    assert rows[0].protocol.endswith("no interval, as all resamples give the same")
    task = BinaryTask(TEST, DEV)
    task.intervals = False
    assert all(row.low is None for row in (task.evaluate(noisy(TEST, DEV)).results[0],))
