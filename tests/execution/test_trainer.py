import json
import math
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from transformers import Trainer, TrainingArguments

from samesense.errors import ModelError
from samesense.execution import trainer as module
from samesense.execution.trainer import newest_checkpoint, run_trainer, training_arguments
from tests.messages import listen


def test_a_checkpoint_without_the_head_is_passed_over(tmp_path):
    for step, files in ((3, ["loss.pt"]), (6, [])):
        folder = tmp_path / f"checkpoint-{step}"
        folder.mkdir()
        (folder / "trainer_state.json").write_text('{"global_step": 1, "max_steps": 9}')
        for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", *files):
            (folder / name).touch()
    assert newest_checkpoint(tmp_path).name == "checkpoint-6"
    assert newest_checkpoint(tmp_path, required_files=["loss.pt"]).name == "checkpoint-3"


class Line(nn.Module):
    """A weight that is trained, and evaluation losses that are given."""

    def __init__(self, losses):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1))
        self.losses = list(losses)

    def forward(self, x, labels=None):
        loss = (self.weight - 1).square().mean()
        return {"loss": loss if self.training else loss * 0 + self.losses.pop(0), "logits": x}


def run_with(losses, folder, metric="eval_loss"):
    settings = SimpleNamespace(learning_rate=0.1, warmup_ratio=0.0, weight_decay=0.0, seed=0, precision="float32")
    arguments = training_arguments(
        TrainingArguments,
        settings,
        folder,
        eval_steps=2,
        metric=metric,
        use_cpu=True,
        max_steps=2 * len(losses),
        label_names=["labels"],
        dataloader_pin_memory=False,
    )
    rows = [{"x": [0.0], "labels": 0.0} for _ in range(8)]
    trainer = Trainer(model=Line(losses), args=arguments, train_dataset=rows, eval_dataset=rows)
    return trainer, run_trainer(trainer, None)


def test_an_evaluation_by_loss_without_a_figure_is_the_worst_as_well(tmp_path):
    messages = listen()
    trainer, stopped = run_with([2.0, math.nan, 1.0, math.nan], tmp_path / "checkpoints")
    assert (stopped, trainer.state.best_metric, trainer.state.best_global_step) == (False, 1.0, 6)
    warned = [line for line in messages if "has no figure" in line]
    assert len(warned) == 1 and "at step 4" in warned[0]
    state = json.loads((tmp_path / "checkpoints" / "checkpoint-8" / "trainer_state.json").read_text())
    assert state["best_metric"] == 1.0 and newest_checkpoint(tmp_path / "none") is None


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_training_of_any_kind_without_a_figure_is_an_error(bad, tmp_path):
    with pytest.raises(ModelError, match=r"No evaluation of the training had a figure, of 3 in 6 steps"):
        run_with([bad] * 3, tmp_path / "checkpoints")
    assert not (tmp_path / "checkpoints").exists()


@pytest.mark.parametrize(("seconds", "expected"), [(0, ["checkpoint-6", "checkpoint-7"]), (60, [])])
def test_what_no_checkpoint_is_chosen_from_writes_few_and_none_at_its_end(seconds, expected, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "CHECKPOINT_SECONDS", seconds)
    run_with([1.0] * 4, tmp_path / "checkpoints", metric=None)
    assert sorted(path.name for path in (tmp_path / "checkpoints").glob("*")) == expected
    run_with([1.0] * 4, tmp_path / "chosen")
    assert (tmp_path / "chosen" / "checkpoint-8").is_dir()
