"""The STS task: the rows of evaluate_sts with what lies behind them."""

from dataclasses import replace

import numpy as np
import pytest

from samesense.data import read_pairs
from samesense.errors import DataError, ModelError
from samesense.evaluation import evaluate_sts
from samesense.evaluation.sts import StsTask
from samesense.metrics import spearman
from tests.models import made_model

N = 300
SCORES = np.random.default_rng(1).normal(size=N)


@pytest.fixture
def data(tmp_path):
    source = np.random.default_rng(0)
    lines = ["subset\tscore\tsentence1\tsentence2"]
    lines += [f"{'xyz'[i % 3]}\t{source.integers(0, 6)}\tleft {i}\tright {i}" for i in range(N)]
    path = tmp_path / "some.test.tsv"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return read_pairs(path)


def candidate(score=lambda pairs: SCORES, seed=3):
    return made_model(score, protocol="made up", seed=seed)


def test_rows_are_those_of_evaluate_sts(data):
    judged = StsTask(data, dataset="some.test", note="raw text, 300 rows").evaluate(candidate())
    expected = evaluate_sts(
        lambda _: SCORES, data.pairs(), data.labels, dataset="some.test", split="test", subsets=data.subsets,
        model="m", protocol="made up; raw text, 300 rows", seed=3,
    )  # fmt: skip
    assert [replace(row, seconds=0) for row in judged.results] == [replace(row, seconds=0) for row in expected]
    assert [row.subset for row in judged.results[:6]] == ["all", "x", "y", "z", "mean", "wmean"]


def test_the_evidence_gives_the_figure_again(data):
    judged = StsTask(data).evaluate(candidate())
    (evidence,) = judged.evidence
    assert (evidence.task, evidence.dataset, evidence.metric) == ("sts", "some.test.tsv", "spearman")
    assert (evidence.model, evidence.seed, evidence.statistic) == ("m", 3, "spearman")
    assert list(evidence.examples) == data.pairs()
    assert spearman(evidence.values, evidence.labels) == judged.results[0].value


def test_the_model_runs_once_and_its_time_is_in_every_row(data):
    calls = []

    def score(pairs):
        calls.append(len(pairs))
        return SCORES

    rows = StsTask(data, intervals=False).evaluate(candidate(score)).results
    assert calls == [N]
    assert len({row.seconds for row in rows}) == 1
    assert all(row.low is None for row in rows)


def test_its_texts_are_the_sentences(data):
    task = StsTask(data)
    assert list(task.texts()) == data.sentences1 + data.sentences2
    assert (task.suite, task.embeds) == ("sts", False)


def test_what_gives_no_correlation_is_refused(data):
    with pytest.raises(ModelError, match=r"that of pair 0 is nan \(300 of 300"):
        StsTask(data).evaluate(candidate(lambda pairs: np.full(N, np.nan)))
    with pytest.raises(DataError, match="scores are all 1"):
        StsTask(data).evaluate(candidate(lambda pairs: np.ones(N)))
    with pytest.raises(DataError, match="labels are all 2"):
        StsTask(replace(data, labels=[2.0] * N))
