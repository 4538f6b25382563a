"""Any number of devices: two ranks with unequal parts give the loss and gradient of the joined batch."""

import json
import subprocess
import sys

import pytest
import torch

from samesense.training.losses.base import gather
from tests.training.two_ranks import LOSSES, Encoder, batch, head_gradient


def test_one_process_gathers_nothing():
    rows = torch.ones(3, 2)
    assert gather(rows) is rows


@pytest.mark.slow
def test_two_ranks_equal_one_process(tmp_path):
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command += ["-m", "tests.training.two_ranks", tmp_path / "out.json"]
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    out = json.loads((tmp_path / "out.json").read_text())
    assert out["gathered"] == [0, 1, 2, 10, 11]
    for name, make in LOSSES.items():
        model = Encoder()
        loss_module = make(model, None)
        loss = loss_module(*batch(name))
        loss.backward()
        assert model.table.weight.grad.abs().sum() > 1e-3, name
        for budget in ("None", "9"):
            value, gradient, heads = out[f"{name} {budget}"]
            assert value == pytest.approx(loss.item(), rel=1e-9), name
            expected = model.table.weight.grad.flatten()
            torch.testing.assert_close(torch.tensor(gradient).double(), expected, rtol=1e-6, atol=1e-8)
            for got, wanted in zip(heads, head_gradient(loss_module), strict=True):
                assert got == pytest.approx(wanted, rel=1e-6, abs=1e-9), name


@pytest.mark.slow
def test_the_command_under_torchrun_leaves_one_whole_run(tiny_trunk, toy_pairs, tmp_path):
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m", "samesense", "train"]
    command += [toy_pairs / "train.tsv", "--dev", toy_pairs / "dev.tsv", "--test", toy_pairs / "test.tsv"]
    command += ["--model", tiny_trunk, "--batch-size", "8", "--learning-rate", "2e-3", "--epochs", "3"]
    command += ["--precision", "float32", "--json", "--output", tmp_path / "run"]
    done = subprocess.run([sys.executable, *map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    before, _, after, _ = (json.loads(line)["value"] for line in done.stdout.splitlines())
    assert after > before + 0.3
    record = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (record["status"], record["outcome"]["steps"]) == ("finished", 30)
    assert not (tmp_path / "run" / "checkpoints").exists()
