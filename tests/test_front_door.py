"""The functions of ``samesense``: the same names and defaults as the commands, and data of any form."""

import inspect
import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Union, get_args, get_origin

import pandas as pd
import pyarrow as pa
import pytest

import samesense
from samesense.api.library_function import parameters_of
from samesense.cli.command import as_flag
from samesense.cli.docstrings import arguments_of
from samesense.cli.main import COMMANDS
from samesense.data import sample_path
from samesense.errors import ConfigError
from samesense.results.results import Results
from samesense.urls import Name
from tests.messages import without_progress

COMMAND_ONLY = {"quickstart", "index", "augment"}
"""Commands that are no single call: a demonstration, a collection (a class), a preview."""

FUNCTIONS = [name for name in samesense.__all__ if inspect.isfunction(getattr(samesense, name))]
WITH_COLUMNS = [name for name in FUNCTIONS if "columns" in inspect.signature(getattr(samesense, name)).parameters]

NAMES = sorted(name.replace("-", "_") for name in set(COMMANDS) - COMMAND_ONLY)

NOT_ON_A_TERMINAL = {"encode": {"source"}, "train": {"guard"}}
"""A command has several sources, and takes the guard as a setting."""

OTHER_DEFAULTS = {
    "compare output",  # a page is written in any case
    "score output",  # else standard output
    "rerank source",  # else standard input
    "similarity model",  # or --origin
    "similarity text1",  # else standard input
    "sweep output",  # with --table the folder is the file
}

OTHER_TYPES = {"mine_negatives relative_margin"}
"""``none`` stands for ``None``."""

OTHER_TEXTS = {"encode device", "similarity text1", "similarity text2", "sweep file"}
"""Where a terminal takes something else: shards, standard input, the folder of a sweep."""


def command_named(name):
    return getattr(import_module(f"samesense.cli.commands.{name}"), name)


def kind_of(annotation):
    """The type of a parameter; all that a word names, such as a file or a model, is one."""
    if get_origin(annotation) is Annotated:
        return kind_of(get_args(annotation)[0])
    if get_origin(annotation) in (Union, UnionType):
        return set().union(*map(kind_of, get_args(annotation))) - {NoneType}
    return {"name" if annotation in (str, Path, list[Name], list[str]) else annotation}


@pytest.mark.parametrize("name", NAMES)
def test_a_command_has_the_parameters_of_its_function_with_their_types_and_defaults(name):
    command = parameters_of(command_named(name))
    function = parameters_of(getattr(samesense, name))
    assert function.keys() - command.keys() == NOT_ON_A_TERMINAL.get(name, set())
    for parameter in function.keys() & command.keys():
        flag = as_flag(function[parameter])
        if f"{name} {parameter}" not in OTHER_DEFAULTS:
            assert command[parameter].default == flag.default, parameter
        if f"{name} {parameter}" not in OTHER_TYPES:
            assert kind_of(command[parameter].annotation) == kind_of(flag.annotation), parameter


@pytest.mark.parametrize("name", WITH_COLUMNS)
def test_names_of_columns_are_one_text(name):
    function = getattr(samesense, name)
    parameters = inspect.signature(function).parameters.values()
    required = {parameter.name: "unused" for parameter in parameters if parameter.default is parameter.empty}
    with pytest.raises(ConfigError, match=r"`columns` is one text, names .*; received \['left', 'right'\]"):
        function(**required, columns=["left", "right"])


@pytest.mark.parametrize("name", NAMES)
def test_a_parameter_has_one_text(name):
    command = command_named(name)
    described = arguments_of(inspect.unwrap(command)).keys() & parameters_of(getattr(samesense, name)).keys()
    assert {f"{name} {parameter}" for parameter in described} <= OTHER_TEXTS
    for parameter, value in parameters_of(command).items():
        helps = [note.help for note in value.annotation.__metadata__ if note.help]
        assert len(helps) == 1, parameter


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


def test_sets_in_memory_are_told_apart(tiny_trunk, tmp_path):
    train, dev, test = (pd.read_csv(sample_path(split), sep="\t", quoting=3) for split in ("train", "dev", "test"))
    settings = {"model": str(tiny_trunk), "max_steps": 1, "precision": "float32"}
    run = samesense.train(train, dev=dev, test=test, guard=[dev, test], output=tmp_path / "run", **settings)
    name = "DataFrame in memory"
    assert [run.verdict.task.dataset, *(guard.dataset for guard in run.verdict.guards)] == [
        name,
        f"{name} 2",
        f"{name} 3",
    ]
    by_folds = samesense.train(train[:60], guard=dev, output=tmp_path / "folds", **settings)
    assert [guard.dataset for guard in by_folds.verdict.guards] == [f"{name} 2"]
    student = samesense.distil(
        train["question1"],
        teacher=str(tiny_trunk),
        student="layers:1",
        test=[dev, test],
        output=tmp_path / "small",
        max_steps=1,
    )
    assert f"| {name} 2 " in str(student)
    with pytest.raises(ConfigError, match=r"received TrainingRun\. Give its folder: run\.model\."):
        samesense.evaluate(run, dev)


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
