"""The functions of ``samesense``: the same names and defaults as the commands, and data of any form."""

import inspect
import os
import subprocess
import sys
from dataclasses import fields
from importlib import import_module

import pyarrow as pa
import pytest

import samesense
from samesense.cli.main import COMMANDS
from samesense.cli.output import PairOptions, TableFormat
from samesense.data import sample_path
from samesense.results import Results
from tests.messages import without_progress

COMMAND_ONLY = {"quickstart", "index", "augment"}
"""Commands that are no single call: a demonstration, a collection (a class), a preview."""

OWN = {
    "json",
    "dry_run",
    "folds",
    "settings",
    "markdown",
    "latex",
    "figures",
    "suite",
    "subsets",
    "origin",
    "similarity threshold",
    "table",
    "set_",
    "map_",
    "format",
    "shard_size",
    "workers",
    "executor",
    "address",
    "encode drop_bad_rows",
    "dedup drop_bad_rows",
    "match drop_bad_rows",
    "mine drop_bad_rows",
    "output",
    "removed",
    "groups",
    "unmatched",
    "limit",
    "encode sources",
    "encode keep",
    "encode vectors",
}
"""Flags of printing, of several calls in one, or with another name."""


@pytest.mark.parametrize("name", sorted(set(COMMANDS) - COMMAND_ONLY))
def test_command_and_function_have_the_same_defaults(name):
    name = name.replace("-", "_")
    command = dict(inspect.signature(getattr(import_module(f"samesense.cli.{name}"), name)).parameters)
    function = inspect.signature(getattr(samesense, name)).parameters
    settings = any(parameter.kind is parameter.VAR_KEYWORD for parameter in function.values())
    assert settings == ("settings" in command) or name == "sweep"
    if command.pop("pair_options", None):  # the flags of reading, bundled
        command |= {
            field.name: inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default)
            for field in fields(PairOptions)
        }
    if command.pop("reading", None) and name != "similarity":  # this command reads standard input only
        command |= {
            field.name: inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default)
            for field in fields(TableFormat)
        }
    for flag, parameter in command.items():
        if not {flag, f"{name} {flag}"} & OWN:
            assert flag in function, f"{name} has no argument {flag}"
            assert function[flag].default in (parameter.default, inspect.Parameter.empty), f"{name}, {flag}"


def test_from_data_to_a_report(tiny_trunk, tmp_path):
    splits = [samesense.read(sample_path(split)) for split in ("train", "dev", "test")]
    train, dev, test = splits
    run = samesense.train(train, dev=dev, test=test, model=str(tiny_trunk), max_steps=2, output=tmp_path / "run")
    assert "trained 2 steps" in str(run)
    results = samesense.evaluate(run.model, test, intervals=False)
    assert isinstance(results, Results)
    assert {row.metric for row in results} == {"spearman", "pearson"}
    report = samesense.compare({"start": tiny_trunk, "run": tmp_path / "run"}, test)
    report.save(tmp_path / "report.html")
    assert "<html" in (tmp_path / "report.html").read_text(encoding="utf-8")[:200]
    model = samesense.load(tmp_path / "run")
    assert model.similarity("a cat", "a cat") == pytest.approx(1, abs=1e-5)
    assert samesense.similarity(model, "a cat", "a cat") == pytest.approx(1, abs=1e-5)
    assert samesense.encode(model, ["a cat", "a dog"]).shape == (2, 32)
    assert [pair[:2] for pair in samesense.mine(["a cat", "a dog", "a cat"], model=model, top=1)] == [(0, 2)]


def test_training_takes_data_in_memory_and_holds_out(tiny_trunk, tmp_path):
    pairs = samesense.read(sample_path("train"))
    rows = list(zip(pairs.sentences1, pairs.sentences2, pairs.labels, strict=True))
    common = {"model": str(tiny_trunk), "max_steps": 1, "precision": "float32", "seed": 3, "folds": "none"}
    by_rows = samesense.train(rows, output=tmp_path / "rows", **common)
    frame = pa.table(dict(zip(("sentence1", "sentence2", "score"), map(list, zip(*rows, strict=True)), strict=True)))
    by_frame = samesense.train(frame, output=tmp_path / "frame", **common)
    by_path = samesense.train(sample_path("train"), output=tmp_path / "path", **common)
    scores = {run.output.best_dev_spearman for run in (by_rows, by_frame, by_path)}
    assert len(scores) == 1 and None not in scores


def test_texts_are_for_simcse(tiny_trunk, tmp_path):
    texts = samesense.read(sample_path("train")).sentences1
    run = samesense.train(texts, model=str(tiny_trunk), max_steps=1, batch_size=8, output=tmp_path / "run", dev="none")
    assert '"method": "simcse"' in (tmp_path / "run" / "manifest.json").read_text()
    assert run.output.steps == 1


@pytest.mark.slow
def test_nothing_is_printed_unasked(tiny_desk, tmp_path):
    script = tmp_path / "user.py"
    script.write_text(f"""if True:
        import samesense
        for encoder in ("bi", "cross"):
            how = dict(encoder=encoder, max_steps=2, eval_steps=1, precision="float32", batch_size=8)
            run = samesense.train({str(sample_path("train"))!r}, model={str(tiny_desk)!r}, output=encoder, **how)
            samesense.evaluate(run.model, {str(sample_path("test"))!r}, intervals=False)
            samesense.load(encoder).similarity("a", "the")
    """)
    theirs = ("TQDM_DISABLE", "HF_HUB_DISABLE_PROGRESS_BARS", "TRANSFORMERS_VERBOSITY")  # a user has set none of them
    environment = {name: value for name, value in os.environ.items() if name not in theirs}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    lines = without_progress(done.stderr)
    assert [line for line in lines if "unknown to the model" not in line] == []  # nothing from logging
