"""Advice after a loss of quality follows from the observations of the run."""

from dataclasses import replace

import pytest

from samesense.data import PairData
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.run.outcome.advice import Observations, advice
from samesense.reports.figures.curves import Curve
from samesense.reports.run_verdict import Finding, Verdict

WORSE = Finding(
    role="test", dataset="test.tsv", n=500, metric="spearman", start=0.8, end=0.7, low=-0.12, high=-0.08, p_value=0.001
)
FINE = replace(WORSE, end=0.85, low=0.04, high=0.06)
PAIRS = PairData(
    sentences1=["a", "b", "a"],
    sentences2=["c", "d", "c"],
    labels=[0.0, 5.0, 5.0],
    subsets=None,
    kind="scored",
    scale=(0, 5),
    source="train.tsv",
    label_column="score",
)


def seen(*dev, steps=100, **fields):
    curve = Curve("run", tuple(steps * index / (len(dev) - 1) for index in range(len(dev))), dev) if dev else None
    return Observations(CosentSettings(learning_rate=2e-3, epochs=3), PAIRS, steps, curve, **fields)


def test_nothing_is_advised_where_nothing_got_worse():
    assert advice(Verdict(task=FINE), seen(0.8, 0.85)) == ()


def test_a_verdict_on_nli_labels_that_shows_no_difference_is_not_the_last_word():
    finding = replace(FINE, low=-0.04, p_value=0.5, role="cross-fitted dev")
    pairs = replace(PAIRS, labels=[0.0, 2.0, 2.0], kind="nli", scale=(0, 2), zero_class="contradiction")
    run = replace(seen(0.8, 0.85), data=pairs, settings=CosentSettings(loss="angle"))
    assert advice(Verdict(task=finding), run) == (
        "give scored pairs as `test`: NLI labels, on which the verdict is, do not measure similarity",
    )
    assert advice(Verdict(task=replace(finding, role="test")), run) == ()
    assert advice(Verdict(task=FINE), run) == ()
    assert advice(Verdict(task=finding), replace(run, settings=CosentSettings())) == ()


@pytest.mark.parametrize(
    ("what", "expected"),
    [
        (seen(0.8, 0.3, 0.2), "`learning_rate` 0.0002 in place of 0.002, as dev fell and never came back (80.0"),
        (seen(0.8, 0.84, 0.8, 0.7, 0.6), "fewer `epochs` than 3: dev was best at step 25 of 100"),
        (seen(0.8, 0.84, 0.86), "look at dev: it rose from 80.0 to 86.0"),
        (seen(), "give `dev` FILE: nothing selected"),
        (seen(0.8, 0.3, cones=(0.05, 0.9)), "random texts have moved together (mean cosine 0.05 before, 0.90 after)"),
    ],
)
def test_the_first_advice_is_that_of_the_curve(what, expected):
    advices = advice(Verdict(task=WORSE), what)
    assert expected in advices[0]
    assert sum("learning_rate" in advised for advised in advices) <= 1


def test_merge_is_advised_where_it_was_not_tried_and_the_doctor_is_heard():
    advices = advice(Verdict(task=WORSE), seen(0.8, 0.3))
    assert any("`merge`" in advised for advised in advices)
    assert any(
        "see to the data" in advised and "label" in advised for advised in advices
    )  # rows 1 and 3 contradict each other


def test_a_hurt_guard_alone_asks_for_less_of_the_training():
    hurt = replace(WORSE, role="guard", dataset="general.tsv")
    advices = advice(Verdict(task=FINE, guards=(hurt,)), seen(0.8, 0.85))
    assert "try `merge`, which keeps more of what the start did on general.tsv" in advices
    assert any("train on pairs like general.tsv too" in advised for advised in advices)
    assert not any("see to the data" in advised for advised in advices)


def test_a_model_without_a_figure_is_advised_too():
    ruined = Verdict(reason="the trained model has no figure on test.tsv: all scores are the same")
    assert "`learning_rate`" in advice(ruined, seen())[1]
