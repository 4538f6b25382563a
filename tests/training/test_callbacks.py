"""Files of callbacks are written atomically, by one process, and with each loss under its own name."""

from types import SimpleNamespace

import pytest
import torch
from transformers import TrainerState

from samesense.errors import OutputError
from samesense.losses.softmax import Softmax
from samesense.training import callbacks
from samesense.training.callbacks import (
    LOSS_WEIGHTS,
    History,
    SaveLossWeights,
    Times,
    load_loss_weights,
    loss_weights,
)


@pytest.fixture
def loss(tiny):
    return Softmax(tiny, classes=2)


@pytest.fixture
def args(tmp_path):
    """Of a trainer that has just saved its third step."""
    (tmp_path / "checkpoint-3").mkdir()
    return SimpleNamespace(output_dir=tmp_path)


def test_weights_of_a_loss_are_written_whole_or_not_at_all(loss, args, monkeypatch):
    def cut_off(weights, path):
        path.write_bytes(b"PK")
        raise OSError("no room")

    monkeypatch.setattr(callbacks.torch, "save", cut_off)
    with pytest.raises(OutputError, match="no room"):
        SaveLossWeights(loss).on_save(args, TrainerState(global_step=3), None)
    assert not list((args.output_dir / "checkpoint-3").iterdir())


def test_only_the_first_of_several_processes_writes(loss, args):
    for first, written in ((False, set()), (True, {"history.jsonl", "loss.pt", "times.json"})):
        state = TrainerState(global_step=3, is_world_process_zero=first)
        History(args.output_dir / "history.jsonl").on_log(args, state, None)
        SaveLossWeights(loss).on_save(args, state, None)
        Times().on_save(args, state, None)
        assert {path.name for path in args.output_dir.rglob("*") if path.is_file()} == written


def test_weights_of_several_losses_keep_apart(tiny, tmp_path):
    heads, restored = (torch.nn.ModuleDict({name: Softmax(tiny, classes=2) for name in ("a", "b")}) for _ in range(2))
    weights = loss_weights(heads)
    assert set(weights) == {f"{name}.head.{parameter}" for name in "ab" for parameter in ("weight", "bias")}
    torch.save(weights, tmp_path / LOSS_WEIGHTS)
    load_loss_weights(restored, tmp_path)
    torch.testing.assert_close(loss_weights(restored), weights, atol=0, rtol=0)
