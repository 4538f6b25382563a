"""Cross-encoders on any number of devices: the loss and the gradient are those of the joined batch."""

import json
import subprocess
import sys

import pytest

from tests.training.cross_two_ranks import LOSSES, CrossModel, loss_and_gradient


def torchrun(*arguments):
    command = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", *map(str, arguments)]
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


@pytest.mark.slow
def test_two_ranks_equal_one_process(tmp_path):
    torchrun("-m", "tests.training.cross_two_ranks", tmp_path / "out.json")
    out = json.loads((tmp_path / "out.json").read_text())
    for name in LOSSES:
        model = CrossModel()
        value, gradient = loss_and_gradient(name, model, model, slice(None))
        assert sum(map(abs, gradient)) > 1e-3
        for budget in (None, 12):
            assert out[f"{name} {budget}"][0] == pytest.approx(value, rel=1e-9)
            assert out[f"{name} {budget}"][1] == pytest.approx(gradient, rel=1e-6, abs=1e-9)


@pytest.mark.slow
def test_the_command_under_torchrun_leaves_one_whole_run(tiny_trunk, toy_pairs, tmp_path):
    arguments = ["-m", "samesense", "train", toy_pairs / "train.tsv", "--dev", toy_pairs / "dev.tsv"]
    arguments += ["--test", toy_pairs / "test.tsv", "--encoder", "cross", "--model", tiny_trunk, "--max-steps", 6]
    arguments += ["--batch-size", 8, "--precision", "float32", "--json", "--output", tmp_path / "run"]
    rows = [json.loads(line) for line in torchrun(*arguments).splitlines()]
    assert [row["metric"] for row in rows] == ["spearman", "pearson"]
    record = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (record["status"], record["outcome"]["steps"]) == ("finished", 6)
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        ".lock", "history.jsonl", "manifest.json", "model", "results.jsonl",
    ]  # fmt: skip
