import numpy as np
import pytest

from samesense.errors import DataError, ModelError
from samesense.evaluation.sections import SectionTask
from samesense.metrics import mean_interval
from tests.evaluation.toy import candidate, hash_of

TRIPLETS = [(f"anchor {i}", f"positive {i * i}", f"negative {i + 3}") for i in range(200)]


def test_accuracy_and_evidence_by_loops():
    model = candidate(lambda a, b: hash_of(a + b) % 7)
    evaluated = SectionTask(TRIPLETS, "toy.test", note="own text").evaluate(model)
    (row,), (evidence,) = evaluated.results, evaluated.evidence
    outcomes = []
    ties = 0
    for anchor, positive, negative in TRIPLETS:
        near = hash_of(anchor + positive) % 7
        far = hash_of(anchor + negative) % 7
        outcomes.append(1.0 if near > far else 0.0)
        ties += near == far
    assert 0 < ties < 200
    assert evidence.values.tolist() == outcomes
    assert row.value == pytest.approx(np.mean(outcomes))
    assert (row.low, row.high) == mean_interval(outcomes)
    assert row.protocol == (
        f"by rule; own text; positive scored above negative; {ties} ties count as errors; 95 % bootstrap, 1000 samples"
    )
    assert (row.task, row.dataset, row.split, row.subset, row.metric, row.n) == (
        "sections",
        "toy.test",
        "test",
        "all",
        "accuracy",
        200,
    )
    assert (evidence.statistic, evidence.labels, evidence.examples[0]) == (
        "mean",
        None,
        "anchor 0\npositive 0\nnegative 3",
    )


def test_a_constant_model_is_always_wrong_and_an_oracle_never():
    task = SectionTask(TRIPLETS, "toy")
    constant = task.evaluate(candidate(lambda a, b: 0.9)).results[0]
    assert constant.value == 0.0
    assert "200 ties" in constant.protocol
    assert task.evaluate(candidate(lambda a, b: b.startswith("positive"))).results[0].value == 1.0


def test_texts_are_all_three_sentences():
    assert set(SectionTask(TRIPLETS, "toy").texts()) == {text for triplet in TRIPLETS for text in triplet}


def test_refuses():
    with pytest.raises(DataError, match="toy: at least 2 triplets are needed, got 1"):
        SectionTask(TRIPLETS[:1], "toy")
    with pytest.raises(DataError, match="in triplet 1 both are 'same'"):
        SectionTask([TRIPLETS[0], ("a", "same", "same")], "toy")
    with pytest.raises(ModelError, match="pair 200 is nan"):
        SectionTask(TRIPLETS, "toy").evaluate(candidate(lambda a, b: 1 if b.startswith("pos") else np.nan))


def test_documents_may_be_the_examples():
    triplets = [("a", "near", "far"), ("a", "far", "near"), ("d", "near", "e"), ("d", "near", "far")]
    model = candidate(lambda a, b: 1 if b == "near" else 0)
    evaluated = SectionTask(triplets, "toy", documents=[7, 7, 9, 9]).evaluate(model)
    assert (evaluated.results[0].n, evaluated.results[0].value) == (2, 0.75)
    assert evaluated.evidence[0].values.tolist() == [0.5, 1.0]
    assert evaluated.evidence[0].examples == ["a\nnear\nfar", "d\nnear\ne"]
