"""A run that stops half-way and goes on, through the recipe."""

import json

import pytest
from transformers import TrainerCallback

from samesense.data import read_pairs
from samesense.recipes import runner
from samesense.recipes.methods import METHODS
from samesense.recipes.settings import CosentSettings
from samesense.training import fit as module


class Killed(BaseException):
    pass


class KillAtStep13(TrainerCallback):
    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == 13:
            raise Killed


@pytest.mark.slow
def test_resumed_run_keeps_its_arithmetic_and_its_results(tiny_trunk, toy_pairs, tmp_path, monkeypatch):
    parts = {part: read_pairs(toy_pairs / f"{part}.tsv") for part in ("train", "dev", "test")}
    settings = CosentSettings(model=str(tiny_trunk), learning_rate=2e-3, epochs=3, eval_steps=5)
    monkeypatch.setattr(runner, "pick_precision", lambda *_: runner.Choice("bfloat16", "measured first"))
    rest = {"dev": parts["dev"], "test": parts["test"]}
    whole = METHODS["cosent"].run(parts["train"], settings, tmp_path / "whole", **rest)
    real = module.fit
    monkeypatch.setattr(runner, "fit", lambda *a, **k: real(*a, **{**k, "callbacks": [KillAtStep13()]}))
    with pytest.raises(Killed):
        METHODS["cosent"].run(parts["train"], settings, tmp_path / "killed", **rest)
    monkeypatch.setattr(runner, "fit", real)
    assert json.loads((tmp_path / "killed" / "manifest.json").read_text())["status"] == "running"
    monkeypatch.setattr(runner, "pick_precision", lambda *_: runner.Choice("float32", "measured later"))
    resumed = METHODS["cosent"].run(parts["train"], settings, tmp_path / "killed", **rest, resume=True)
    assert resumed.output.precision == "bfloat16"
    assert [r.value for r in resumed.results] == [r.value for r in whole.results]
