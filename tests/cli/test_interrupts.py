"""What Ctrl-C, and the SIGTERM of a scheduler, leave and say."""

import signal
import sys
import time
import tomllib
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from samesense.cli import main as entry
from samesense.cli.main import START_OVER
from samesense.cli.output import RERUN_WITH_FLAG
from samesense.evaluation.sts import StsTask
from tests.conftest import WORDS


@pytest.fixture
def static_vectors(tmp_path):
    """A model of word vectors, which opens without torch."""
    rows = np.random.default_rng(0).normal(size=(len(WORDS), 4))
    lines = [f"{word} {' '.join(f'{value:.3f}' for value in row)}\n" for word, row in zip(WORDS, rows, strict=True)]
    (tmp_path / "words.vec").write_text("".join(lines))
    return f"words:{tmp_path / 'words.vec'}"


def pressed(*_, **__):
    raise KeyboardInterrupt


def test_exit_code_130(run, monkeypatch):
    monkeypatch.setattr(entry, "app", pressed)
    assert run("similarity") == (130, "", f"samesense: interrupted. {START_OVER}\n")


def test_ctrl_c_during_the_imports_of_the_program(monkeypatch, capsys):
    class Finder:
        def find_spec(self, name, *_):
            if name == "samesense.cli.main":
                raise KeyboardInterrupt

    scripts = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "scripts"
    ]
    module, function = scripts["samesense"].split(":")
    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "samesense.cli.main")
    with pytest.raises(SystemExit) as stop:
        getattr(import_module(module), function)()
    assert stop.value.code == 130
    assert capsys.readouterr().err == "samesense: interrupted. Nothing was begun: give the same command again.\n"


@pytest.mark.parametrize("background", [False, True])
def test_sigterm_is_ctrl_c_the_first_time_and_its_usual_self_after(run, monkeypatch, background):
    def told(*_, **__):
        if background:  # as a shell starts what a script puts in the background
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
        raise KeyboardInterrupt

    monkeypatch.setattr(entry, "app", told)
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    try:
        assert run("train")[0] == 130
        assert signal.getsignal(signal.SIGTERM) is before[1]
    finally:
        signal.signal(signal.SIGINT, before[0])


@pytest.mark.posix
@pytest.mark.parametrize("command", ["train", "similarity"])
def test_a_ctrl_c_that_python_swallowed_in_a_finalizer_is_sent_again(run, monkeypatch, command):
    class Finalized:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def work(*_, **__):
        Finalized()
        time.sleep(20)  # the command would end as if nothing had been pressed

    monkeypatch.setattr(entry, "app", work)
    code, _, err = run(command)
    assert code == 130
    assert "Traceback" not in err


def test_another_error_of_a_finalizer_is_reported_as_ever(run, monkeypatch):
    class Finalized:
        def __del__(self):
            raise ValueError("of a finalizer")

    reported = []
    monkeypatch.setattr("sys.unraisablehook", reported.append)
    monkeypatch.setattr(entry, "app", lambda *_, **__: Finalized() and None)
    assert run("similarity")[0] == 0
    assert [report.exc_type for report in reported] == [ValueError]


def test_training_says_how_to_go_on(run, tiny_trunk, toy_pairs, tmp_path, monkeypatch):
    words = ["train", toy_pairs / "train.tsv", "-o", tmp_path / "run", "--model", tiny_trunk, "--max-steps", "2"]
    words += ["--folds", "none"]
    with monkeypatch.context() as patch:
        patch.setattr("samesense.recipes.run.model_adapters.BiEncoder.build", pressed)
        code, _, err = run(*words)
        assert (code, err.splitlines()[-1]) == (130, f"samesense: interrupted. {START_OVER}")
    with monkeypatch.context() as patch:
        patch.setattr("samesense.recipes.run.job.fit", pressed)
        code, _, err = run(*words)
        assert (code, err.splitlines()[-1]) == (130, f"samesense: interrupted. {RERUN_WITH_FLAG}")
    with monkeypatch.context() as patch:
        patch.setattr("samesense.recipes.run.model_adapters.BiEncoder.build", pressed)
        assert run(*words, "--resume")[2].splitlines()[-1] == f"samesense: interrupted. {RERUN_WITH_FLAG}"
    assert run(*words, "--resume")[0] == 0
    with monkeypatch.context() as patch:
        # The earlier run is still there, and is not what this command would go on with.
        patch.setattr("samesense.recipes.run.model_adapters.BiEncoder.build", pressed)
        assert run(*words, "--overwrite")[2].splitlines()[-1] == f"samesense: interrupted. {START_OVER}"
    assert (tmp_path / "run" / "model").is_dir()


def test_results_that_are_kept_are_said_to_be_added_again(run, static_vectors, toy_pairs, tmp_path, monkeypatch):
    evaluate = StsTask.evaluate

    def pressed_at_the_second(task, model):
        return evaluate(task, model) if task.dataset == "dev.tsv" else pressed()

    monkeypatch.setattr(StsTask, "evaluate", pressed_at_the_second)
    data = ("--data", toy_pairs / "dev.tsv", toy_pairs / "test.tsv")
    words = ["evaluate", static_vectors, *data]
    assert run(*words)[2].splitlines()[-1] == f"samesense: interrupted. {START_OVER}"
    code, _, err = run(*words, "--output", tmp_path / "r.jsonl")
    count = len((tmp_path / "r.jsonl").read_text().splitlines())
    there = f"{count} results are in {tmp_path / 'r.jsonl'} already"
    message = f"samesense: interrupted. {there}, and the same command adds them again: name another file."
    assert (code, err.splitlines()[-1]) == (130, message)
