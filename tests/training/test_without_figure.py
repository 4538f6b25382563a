"""Failing runs: undefined evaluations, NaN gradients, and losses without any gradient."""

import json
import math

import pytest
import torch

import samesense
from samesense.data import read_pairs
from samesense.encoder.assembly.build import build
from samesense.encoder.encode import encode
from samesense.errors import DataError, ModelError
from samesense.execution.settings import LESS
from samesense.execution.trainer import newest_checkpoint
from samesense.losses.base import EmbeddingLoss
from samesense.losses.cosent import CoSENT
from samesense.recipes.cosent.settings import CosentSettings
from samesense.recipes.run import evaluation_phase
from samesense.training.dataset import as_dataset
from samesense.training.fit import fit
from samesense.training.settings import TrainingSettings
from tests.messages import listen

SETTINGS = TrainingSettings(learning_rate=1e-3, max_steps=12, eval_steps=3, precision="float32", seed=7)
UNDEFINED = "The correlation is undefined because scores are all 1."


def scoring(*figures):
    """A dev score that gives these figures in turn, of the start first; an error for None, NaN for a NaN."""
    left = list(figures)

    def score(model):
        figure = left.pop(0)
        if figure is None:
            raise DataError(UNDEFINED)
        return figure

    return score


def trained(trunk, pairs, folder, figures, settings=SETTINGS, loss=CoSENT, **options):
    model = build(str(trunk), device="cpu")
    columns = CosentSettings().targets(read_pairs(pairs / "train.tsv")).columns
    score = scoring(*figures) if figures else None
    return model, fit(model, as_dataset(columns), loss(model), settings, folder, dev_score=score, **options)


def history(folder):
    return [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("bad", [None, math.nan], ids=["undefined", "NaN"])
def test_an_evaluation_without_a_figure_is_the_worst_and_is_said_once(bad, toy_pairs, tiny_trunk, tmp_path):
    messages = listen()
    _, outcome = trained(tiny_trunk, toy_pairs, tmp_path, [0.1, 0.3, bad, bad, 0.2])
    assert (outcome.best_dev_spearman, outcome.best_step, outcome.start_dev_spearman) == (0.3, 3, 0.1)
    lines = [line for line in messages if "has no figure" in line]
    assert len(lines) == 1 and "step 6, learning rate 0.0006" in lines[0] and "counts as the worst" in lines[0]
    assert (UNDEFINED in lines[0]) == (bad is None)
    curve = [log["eval_dev_spearman"] for log in history(tmp_path) if "eval_dev_spearman" in log]
    assert curve == [0.1, 0.3, None, None, 0.2]


def test_a_first_evaluation_without_a_figure_is_behind_any_other(toy_pairs, tiny_trunk, tmp_path):
    messages = listen()
    _, outcome = trained(tiny_trunk, toy_pairs, tmp_path, [None, None, -0.9, None, None])
    assert (outcome.best_dev_spearman, outcome.best_step, outcome.start_dev_spearman) == (-0.9, 6, None)
    assert sum("has no figure" in line for line in messages) == 2 and "the start has no figure" in "".join(messages)


def test_early_stopping_counts_them_also_in_a_resumed_run(toy_pairs, tiny_trunk, tmp_path):
    settings = SETTINGS.model_copy(update={"early_stopping_patience": 2})
    _, outcome = trained(tiny_trunk, toy_pairs, tmp_path, [0.1, 0.3, None, None, 0.4], settings)
    assert (outcome.steps, outcome.best_step) == (9, 3)


def test_a_run_without_any_figure_ends_with_an_error_and_leaves_no_checkpoint(toy_pairs, tiny_trunk, tmp_path):
    with pytest.raises(
        ModelError, match=r"of 4 in 12 steps: The correlation is .* Lower `learning_rate`, which is 0\.0"
    ):
        trained(tiny_trunk, toy_pairs, tmp_path, [0.1, None, None, None, None])
    assert not (tmp_path / "checkpoints").exists() and newest_checkpoint(tmp_path / "checkpoints") is None


class Broken(CoSENT):
    """CoSENT with a gradient of NaN from a step on."""

    def __init__(self, model, step=5):
        super().__init__(model)
        self.left = step

    def loss(self, tensors, labels):
        self.left -= 1
        return super().loss(tensors, labels) * (math.nan if self.left <= 0 else 1)


def test_a_gradient_that_is_no_number_ends_the_run_and_the_best_checkpoint_is_kept(toy_pairs, tiny_trunk, tmp_path):
    messages = listen()
    model, outcome = trained(tiny_trunk, toy_pairs, tmp_path, [0.1, 0.3, 0.2, 0.2, 0.2], loss=Broken)
    assert (outcome.steps, outcome.best_step, outcome.best_dev_spearman) == (5, 3, 0.3)
    assert "step 5, at learning rate 0.001: The gradient is not finite." in "".join(
        messages
    ) and "checkpoint of step 3 is kept" in "".join(messages)
    assert torch.isfinite(torch.as_tensor(encode(model, ["a dog runs"]))).all()
    assert all(math.isfinite(log.get("loss") or 0) for log in history(tmp_path))


@pytest.mark.parametrize("figures", [[], [0.1, 0.3]])
def test_a_run_that_diverges_before_there_is_a_best_checkpoint_is_an_error(figures, toy_pairs, tiny_trunk, tmp_path):
    with pytest.raises(ModelError, match=r"diverged at step 2, learning rate 0.001: The gradient is not finite"):
        trained(tiny_trunk, toy_pairs, tmp_path, figures, loss=lambda model: Broken(model, 2))
    assert not (tmp_path / "checkpoints").exists()


class Nothing(EmbeddingLoss):
    """A loss without a gradient, except in the steps of ``taught``."""

    labels = "order"

    def __init__(self, model, taught=()):
        super().__init__(model)
        self.step, self.taught = 0, taught

    def loss(self, tensors, labels):
        self.step += 1
        return tensors[0].sum() * (1.0 if self.step in self.taught else 0.0)


def test_an_epoch_without_any_gradient_is_refused_when_it_ends(toy_pairs, tiny_trunk, tmp_path):
    settings = SETTINGS.model_copy(update={"max_steps": None, "epochs": 5})
    with pytest.raises(DataError, match=r"No step of 10 changed the model: the loss had no gradient"):
        trained(tiny_trunk, toy_pairs, tmp_path, [0.1] * 60, settings, loss=Nothing)
    assert not (tmp_path / "checkpoints").exists()


def test_many_steps_without_a_gradient_are_said(toy_pairs, tiny_trunk, tmp_path):
    messages = listen()
    trained(tiny_trunk, toy_pairs, tmp_path, [0.1] * 5, loss=lambda model: Nothing(model, (1, 2, 3)))
    assert "75% of the steps changed nothing" in "".join(messages)


def test_a_whole_run_with_a_rate_that_ruins_the_model(toy_pairs, tiny_trunk, tmp_path, monkeypatch):
    monkeypatch.setitem(LESS, "learning_rate", 1e9)
    train = toy_pairs / "train.tsv"
    dev = toy_pairs / "dev.tsv"
    wild = {
        "model": str(tiny_trunk),
        "precision": "float32",
        "max_grad_norm": 1e9,
        "learning_rate": 1e9,
        "warmup_ratio": 0.0,
    }
    with pytest.raises((ModelError, DataError), match=r"No model is kept"):
        samesense.train(train, dev=dev, output=tmp_path / "run", max_steps=8, eval_steps=2, **wild)
    assert not (tmp_path / "run" / "model").exists() and not (tmp_path / "run" / "checkpoints").exists()


def test_a_run_that_leaves_one_vector_for_all_texts_is_refused(toy_pairs, tiny_trunk, tmp_path):
    options = {"dev": "none", "folds": "none", "model": str(tiny_trunk), "precision": "float32", "max_steps": 20}
    with pytest.raises(ModelError, match=r"gives all texts one vector: the least cosine of .* Lower `learning_rate`"):
        samesense.train(toy_pairs / "train.tsv", output=tmp_path / "run", learning_rate=1, warmup_ratio=0.0, **options)
    assert not (tmp_path / "run" / "model").exists()


def test_a_run_whose_start_had_one_vector_for_all_texts_is_kept(toy_pairs, tiny_trunk, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation_phase, "COLLAPSED", -1.0)
    options = {"dev": "none", "folds": "none", "model": str(tiny_trunk), "precision": "float32", "max_steps": 2}
    samesense.train(toy_pairs / "train.tsv", output=tmp_path / "run", **options)
    assert (tmp_path / "run" / "model").is_dir()


def test_a_start_without_a_figure_is_trained_and_said(toy_pairs, tiny_trunk, tmp_path, monkeypatch):
    messages = listen()
    rows = [{"sentence1": "a dog", "sentence2": "a cat", "score": number % 5} for number in range(40)]
    train = toy_pairs / "train.tsv"
    run = samesense.train(
        train, dev="none", test=rows, model=str(tiny_trunk), max_steps=2, precision="float32", output=tmp_path / "run"
    )
    assert (run.folder / "model").is_dir() and run.verdict is not None
    assert "the start has no figure on" in "".join(messages) and "the trained model has no figure on" in "".join(
        messages
    )
