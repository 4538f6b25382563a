import numpy as np
import pytest
from scipy.stats import rankdata

from samesense.errors import DataError
from samesense.reports.details import against_each_other, against_gold
from tests.reports.made import evidence


def sample(n=300, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 6, n).astype(float)
    return labels, np.round(labels + rng.normal(size=n), 1), np.round(labels + 2 * rng.normal(size=n), 1)


def test_the_worst_pairs_are_those_farthest_by_rank():
    labels, values, _ = sample()
    cases = against_gold(evidence("a", values, labels), most=7)
    distance = np.abs(rankdata(values) - rankdata(labels)) / 300
    assert [abs(case.gold_rank - case.ranks["a"]) for case in cases] == pytest.approx(sorted(distance)[::-1][:7])
    for case in cases:
        index = int(case.texts[0].split()[1])
        assert (float(case.label), case.scores["a"]) == (pytest.approx(labels[index], abs=1e-6), values[index])
        assert case.gold_rank == pytest.approx((rankdata(labels)[index] - 0.5) / 300)


def test_two_models_are_set_against_each_other_without_the_gold():
    labels, values, second_values = sample()
    cases = against_each_other(evidence("a", values, labels), evidence("b", second_values, labels), most=4)
    distance = np.abs(rankdata(values) - rankdata(second_values)) / 300
    assert [abs(case.ranks["a"] - case.ranks["b"]) for case in cases] == pytest.approx(sorted(distance)[::-1][:4])


def test_a_pair_is_shown_once_in_either_order():
    labels = np.array([5.0, 5, 0, 1])
    values = np.array([0.1, 0.1, 0.9, 0.5])
    pairs = [("x", "y"), ("y", "x"), ("p", "q"), ("r", "s")]
    assert [case.texts for case in against_gold(evidence("a", values, labels, pairs=pairs))][:2] == [
        ("p", "q"),
        ("x", "y"),
    ]


def test_a_model_that_agrees_has_no_cases():
    labels = np.arange(6.0)
    assert against_gold(evidence("a", labels**3, labels)) == []


def test_other_pairs_are_refused():
    labels, values, _ = sample(10)
    first = evidence("a", values, labels)
    with pytest.raises(DataError, match="a and b were evaluated on different pairs"):
        against_each_other(first, evidence("b", values, labels, pairs=[("x", str(index)) for index in range(10)]))
