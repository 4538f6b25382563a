"""Any number of devices: two ranks with unequal parts give the loss and gradient of the joined batch."""

import json
import subprocess
import sys
from itertools import product

import pytest
import torch

from samesense.losses.gather import gather
from tests.training import cross_two_ranks, ragged_two_ranks
from tests.training.bert import Encoder, gradient
from tests.training.two_ranks import LOSSES, WIDTHS, adapted, batch, head_gradient, made, with_adapters


def run_python(*arguments):
    done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_one_process_gathers_nothing():
    rows = torch.ones(3, 2)
    assert gather(rows) is rows


@pytest.mark.slow
@pytest.mark.posix
def test_two_ranks_equal_one_process(tiny_trunk, tmp_path):
    run_python("-m", "tests.training.two_ranks", tmp_path / "out.json", tiny_trunk, tmp_path)
    out = json.loads((tmp_path / "out.json").read_text())
    assert out["bi"]["gathered"] == [0, 1, 2, 10, 11]
    at_widths = [out["bi"][f"cosent {widths} None"][0] for widths in WIDTHS]
    assert at_widths[1] > at_widths[0]  # each further width adds to the loss
    check_encoders(out["bi"])
    check_cross_encoders(out["cross"])
    check_packed_pairs(out["packed"], tiny_trunk)
    check_tuples(out["ragged"])
    check_adapters(out["adapters"])
    assert out["resumed"] == {"steps": [[1, 2, 3, 4, 5, 6], [1, 2, 3], [4, 5, 6]], "same": True}


def check_encoders(out):
    for name, widths in product(LOSSES, WIDTHS):
        model = Encoder()
        loss_module = made(name, model, None, widths)
        loss = loss_module(*batch(name))
        loss.backward()
        expected = gradient(model)
        assert expected.abs().sum() > 1e-3, name
        for budget in ("None", "9"):
            value, slope, heads = out[f"{name} {widths} {budget}"]
            assert value == pytest.approx(loss.item(), rel=1e-9), (name, widths)
            torch.testing.assert_close(torch.tensor(slope).double(), expected, rtol=1e-6, atol=1e-8)
            for got, expected_slope in zip(heads, head_gradient(loss_module), strict=True):
                assert got == pytest.approx(expected_slope, rel=1e-6, abs=1e-9), (name, widths)


def check_adapters(out):
    model = adapted()
    if model is None:
        return
    for (value, slope), (expected, expected_slope) in zip(out, with_adapters(model, (0, 11)), strict=True):
        assert value == pytest.approx(expected, rel=1e-9)
        torch.testing.assert_close(torch.tensor(slope), torch.tensor(expected_slope), rtol=1e-6, atol=1e-8)
        assert torch.tensor(expected_slope).abs().sum() > 1e-3


def check_cross_encoders(out):
    for name in cross_two_ranks.LOSSES:
        model = cross_two_ranks.CrossModel()
        value, gradient = cross_two_ranks.loss_and_gradient(name, model, model, slice(None))
        assert sum(map(abs, gradient)) > 1e-3, name
        for budget in (None, 12):
            assert out[f"{name} {budget}"][0] == pytest.approx(value, rel=1e-9), name
            assert out[f"{name} {budget}"][1] == pytest.approx(gradient, rel=1e-6, abs=1e-9), name


def check_packed_pairs(out, folder):
    value, slope = cross_two_ranks.packed_loss_and_gradient(folder, slice(None), pack=False, distributed=False)
    assert out[0] == pytest.approx(value, rel=1e-4)
    packed_slope = torch.tensor(out[1])
    expected = torch.tensor(slope)
    assert expected.abs().max() > 1e-2
    torch.testing.assert_close(packed_slope, expected, rtol=1e-3, atol=5e-5)


def check_tuples(out):
    for name, expected in ragged_two_ranks.results(Encoder(), range(5), None).items():
        for budget in (None, 4):
            assert out[str(budget)][name] == pytest.approx(expected, rel=1e-6, abs=1e-9), name
        assert expected[0] > 0


@pytest.mark.long
def test_the_command_under_torchrun_leaves_one_whole_run(tiny_trunk, toy_pairs, tmp_path):
    command = ["samesense", "train", toy_pairs / "train.tsv", "--dev", toy_pairs / "dev.tsv"]
    command += ["--test", toy_pairs / "test.tsv", "--model", tiny_trunk, "--max-steps", 6, "--batch-size", 8]
    command += ["--learning-rate", "2e-3", "--precision", "float32", "--json", "--output", tmp_path / "run"]
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    *rows, verdict = [json.loads(line) for line in run_python(*launcher, *command).splitlines()]
    assert verdict["sets"][0]["end"] == rows[2]["value"]
    assert [row["metric"] for row in rows] == ["spearman", "pearson"] * 2
    record = json.loads((tmp_path / "run" / "manifest.json").read_text())
    assert (record["status"], record["outcome"]["steps"]) == ("finished", 6)
    assert sorted(p.name for p in (tmp_path / "run").iterdir() if p.name != "model") == [
        ".lock",
        "held-out-scores.json",
        "history.jsonl",
        "manifest.json",
        "report.html",
        "results.jsonl",
        "step-scores.jsonl",
    ]
