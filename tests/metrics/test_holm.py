import numpy as np
import pytest

from samesense.errors import DataError
from samesense.metrics import holm
from tests.references.multiple import rejected


def test_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([0.2]) == [0.2]
    assert holm([]) == []


@pytest.mark.parametrize("decimals", [2, 12])
def test_rejects_what_the_step_down_procedure_rejects(decimals):
    rng = np.random.default_rng(0)
    for _ in range(300):
        p_values = np.round(rng.random(rng.integers(1, 12)) ** 3, decimals).tolist()
        adjusted = holm(p_values)
        for level in (0.0123, 0.0512, 0.1034):
            assert [value <= level for value in adjusted] == rejected(p_values, level)


def test_equal_p_values_stay_equal_and_order_is_kept():
    adjusted = holm([0.01, 0.2, 0.01, 0.01])
    assert adjusted[0] == adjusted[2] == adjusted[3] == pytest.approx(0.04)
    assert adjusted[1] == 0.2


def test_false_findings_stay_rare():
    rng = np.random.default_rng(4)
    false_findings = sum(min(holm(rng.random(7))) <= 0.05 for _ in range(2000))
    assert false_findings / 2000 < 0.07


@pytest.mark.parametrize(("bad", "text"), [(-0.1, r"p_values\[1\] is -0.1"), (1.1, "is 1.1"), (np.nan, "is nan")])
def test_refuses_what_is_no_probability(bad, text):
    with pytest.raises(DataError, match=text):
        holm([0.5, bad])
