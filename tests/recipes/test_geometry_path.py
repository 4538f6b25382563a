"""Alignment and uniformity of dev along the training, in the history of a run."""

import json

import pytest

from samesense.data import read_pairs
from samesense.data.sentences import read_unlabelled
from samesense.errors import ConfigError
from samesense.evaluation.geometry import GeometryTask
from samesense.inference.models.load import load
from samesense.recipes.methods import METHODS
from samesense.recipes.unsupervised.settings import SimcseSettings


@pytest.fixture
def settings(tiny_trunk):
    return SimcseSettings(
        model=str(tiny_trunk),
        pooling="mean",
        max_steps=4,
        eval_steps=2,
        batch_size=8,
        precision="float32",
        geometry=True,
        learning_rate=1e-3,
    )


def measured(folder, dev):
    return {result.metric: result.value for result in GeometryTask(dev).evaluate(load(folder)).results}


def test_the_path_begins_at_the_start_point_and_ends_at_the_model(settings, tiny_trunk, toy_pairs, tmp_path):
    dev = read_pairs(toy_pairs / "dev.tsv", label_range=(0, 5))
    trained = METHODS["simcse"].run(read_unlabelled(toy_pairs / "train.tsv"), settings, tmp_path / "run", dev=dev)
    history = [json.loads(line) for line in (tmp_path / "run" / "history.jsonl").read_text().splitlines()]
    path = {log["step"]: (log["dev_alignment"], log["dev_uniformity"]) for log in history if "dev_alignment" in log}
    assert list(path) == [0, 2, 4]
    for folder, step in ((tiny_trunk, 0), (tmp_path / "run", trained.output.best_step)):
        expected = measured(folder, dev)
        assert path[step] == pytest.approx((expected["alignment"], expected["uniformity"]), abs=1e-5)
    assert path[0] != path[4]


def test_without_dev_there_is_no_path(settings, toy_pairs, tmp_path):
    with pytest.raises(ConfigError, match="geometry is measured on the dev set, and there is none"):
        METHODS["simcse"].run(read_unlabelled(toy_pairs / "train.tsv"), settings, tmp_path / "run")
    assert not (tmp_path / "run").exists()
