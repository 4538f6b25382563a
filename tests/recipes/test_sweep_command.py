"""The command sweep: what it prints, its exit codes, and Ctrl-C."""

import json
import shlex
import signal
import subprocess
import sys
import time

import pytest

import samesense
from samesense.errors import OutputError
from samesense.recipes.sweep import cell as cells
from samesense.recipes.sweep.cell import status_of
from tests.command import run_command
from tests.reports.latex import read_tables

pytest.importorskip("matplotlib")


@pytest.fixture
def command(capsys):
    return lambda *words: run_command(capsys, "sweep", *words)


@pytest.fixture
def written(tiny_trunk, toy_pairs, tmp_path):
    path = tmp_path / "toy.toml"
    path.write_text(
        "seeds = [1]\n[base]\nmodel = '${START}'\nlearning_rate = 2e-3\nmax_steps = 4\neval_steps = 2\n"
        "precision = 'float32'\n[grid]\nloss = ['cosent', 'mse']\n[[data]]\nname = 'toy'\n"
        + "".join(f"{split} = '${{DATA}}/{split}.tsv'\n" for split in ("train", "dev", "test"))
    )
    return [path, "--set", f"START={tiny_trunk}", f"DATA={toy_pairs}"]


def test_command(written, tmp_path, command):
    out = tmp_path / "out"
    assert command(*written, "-o", out, "--dry-run")[:2] == (
        0,
        "to run: toy, cosent, seed 1\nto run: toy, mse, seed 1\n",
    )
    assert command(*written, "-o", out, "--dry-run", "--datasets", "toy")[1].count("to run") == 2
    assert (
        "datasets names data sets of the sweep, toy" in command(*written, "-o", out, "--dry-run", "--datasets", "x")[2]
    )
    assert not out.exists()
    code, printed, stderr = command(*written, "-o", out, "--json", "--jobs", "1")  # in this process
    assert (code, [json.loads(line)["variant"] for line in printed.splitlines()]) == (0, ["cosent", "mse"])
    assert "2 of 2: toy, mse, seed 1: toy " in stderr
    code, printed, _ = command(out, "--table")
    assert code == 0
    assert "| cosent |" in printed
    for words, why in (
        ([written[0]], "samesense sweep FILE --output FOLDER"),
        ([tmp_path, "--table"], "holds no sweep"),
        ([tmp_path / "nothing", "--table"], "holds no sweep"),
        ([*written, "-o", written[0]], "toy.toml is a file"),
        ([*written, "-o", written[0], "--dry-run"], "toy.toml is a file"),
        (
            [out, "--table", "--datasets", "toy"],
            "--table shows the tables of a sweep and runs nothing; received --datasets",
        ),
        ([out, "--table", "--jobs", "1"], "received --jobs. Leave it out."),
        ([written[0], "-o", out, "--set", "START"], "--set takes NAME=VALUE; received 'START'."),
    ):
        code, _, stderr = command(*words)
        assert code == 2
        assert why in stderr


def test_a_folder_with_something_else_is_refused(written, tmp_path, command):
    (tmp_path / "notes.txt").write_text("mine")
    assert "is not empty and holds no sweep" in command(*written, "-o", tmp_path)[2]
    with pytest.raises(OutputError, match="is not empty and holds no sweep"):
        samesense.sweep(written[0], output=tmp_path)


def test_a_failed_cell_ends_with_code_1(written, tmp_path, monkeypatch, command):
    monkeypatch.setattr(cells, "_train", lambda _: 1 / 0)
    code, printed, stderr = command(*written, "-o", tmp_path / "out", "--jobs", "1")  # in this process
    assert code == 1
    assert "2 of 2 runs failed" in stderr
    assert "toy, cosent, seed 1: ZeroDivisionError: division by zero" in printed


def test_a_call_of_few_runs_leaves_a_partial_table_and_the_next_one_goes_on(
    written, tiny_trunk, toy_pairs, tmp_path, command, capsys
):
    out = tmp_path / "out"
    # In the folder of the sweep, which is empty when it begins.
    latex = out / "my tables" / "t.tex"
    figures = out / "figures"
    words = [*written, "-o", out, "--jobs", "1"]
    for flags, message in (
        (["--max-runs", "0"], "--max-runs is a number of runs from 1 on; received 0"),
        (["--latex", toy_pairs / "test.tsv"], "is read here"),
        (["--latex", written[0]], "is read here"),
    ):
        code, _, error = command(*words, *flags)
        assert (code, message in error) == (2, True), error
    assert command(*words, "--dry-run", "--latex", latex)[0] == 0
    assert not out.exists()
    code, printed, error = command(*words, "--max-runs", "1", "--latex", latex, "--figures", figures)
    assert code == 0, error
    assert printed.startswith("Partial: 1 of 2 runs finished. Missing: toy, mse, seed 1: not run yet. ")
    assert "samesense train" not in printed
    assert "| mse | not run |" in printed and "1 of the others now" in error
    assert r"\emph{Partial: 1 of 2 runs finished." in latex.read_text(encoding="utf-8")
    code, printed, error = command(*words, "--latex", latex, "--figures", figures)
    assert (code, "Partial" in printed, "Partial" in latex.read_text(encoding="utf-8")) == (0, False, False)
    assert len(read_tables(latex.read_text(encoding="utf-8"))[0]) == 3
    assert {path.suffix for path in figures.iterdir()} == {".svg", ".png", ".pdf"}
    assert "learning-toy.pdf" in {path.name for path in figures.iterdir()}
    code, printed, _ = command(out, "--table", "--latex", latex)
    assert code == 0
    sentence, words, _ = printed.splitlines()[-1].split("`")
    assert sentence.startswith("On toy, ") and sentence.endswith("To train by its settings: ")
    values = {"DATA": toy_pairs / "train.tsv", "RUN": tmp_path / "run"}
    arguments = [values.get(word, word) for word in shlex.split(words)[1:]]
    code, printed, error = run_command(capsys, *arguments, "--dev", toy_pairs / "dev.tsv", "--dry-run")
    assert code == 0, error
    settings = json.loads(printed)
    assert settings["loss"] == sentence.split()[2]
    assert (settings["model"], settings["learning_rate"], settings["max_steps"]) == (str(tiny_trunk), 2e-3, 4)


def test_the_command_to_train_by_has_the_options_by_which_the_data_are_read(
    written, toy_pairs, tmp_path, command, capsys
):
    folder = tmp_path / "read otherwise"
    folder.mkdir()
    for split in ("train", "dev", "test"):
        rows = [line.split("\t") for line in (toy_pairs / f"{split}.tsv").read_text().splitlines()[1:]]
        lines = [f"{first}^{second}^{score}^note" for score, first, second in rows]
        (folder / f"{split}.csv").write_text("\n".join(lines) + "\n", encoding="utf-16")
    options = "columns = 'column1,column2,column3'\ndelimiter = '^'\nheader = false\nencoding = 'utf-16'\n"
    text = written[0].read_text().replace(".tsv", ".csv").replace("['cosent', 'mse']", "['cosent']")
    written[0].write_text(f"{text}{options}label_range = [0, 5]\ndrop_bad_rows = true\n")
    code, printed, error = command(*written[:-1], f"DATA={folder}", "-o", tmp_path / "out", "--jobs", "1")
    assert code == 0, error
    words = printed.splitlines()[-1].split("`")[1]
    assert "--label-range 0 5" in words and "--drop-bad-rows" in words
    values = {"DATA": folder / "train.csv", "RUN": tmp_path / "run"}
    arguments = [values.get(word, word) for word in shlex.split(words)[1:]]
    code, printed, error = run_command(capsys, *arguments, "--dev", folder / "dev.csv", "--dry-run")
    assert code == 0, error


def test_ctrl_c_leaves_the_tables_of_what_is_finished(written, tmp_path, monkeypatch, command):
    train = cells._train
    begun = []

    def stopped(job):
        begun.append(job)
        if len(begun) == 2:
            raise KeyboardInterrupt
        return train(job)

    monkeypatch.setattr(cells, "_train", stopped)
    code, printed, error = command(*written, "-o", tmp_path / "out", "--jobs", "1")
    assert code == 130
    assert printed.startswith("Partial: 1 of 2 runs finished.") and "the same command resumes" in error


@pytest.mark.posix
@pytest.mark.long
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_leaves_what_can_be_resumed_and_no_process(written, tmp_path, number):
    out = tmp_path / "out"
    long = (written[0]).read_text().replace("max_steps = 4", "max_steps = 100000")
    written[0].write_text(long)
    words = [sys.executable, "-m", "samesense", "sweep", *map(str, written), "-o", str(out), "--jobs", "2"]
    process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    try:
        while not list(out.glob("runs/*/checkpoints/checkpoint-*/optimizer.pt")):
            assert process.poll() is None
            time.sleep(0.2)
        process.send_signal(number)
        _, error = process.communicate(timeout=120)  # until all writers have closed it, cells among them
    finally:
        process.kill()
    if number != signal.SIGKILL:
        assert process.returncode == 130, error
        assert "the same command resumes" in error
    states = [status_of(folder) for folder in (out / "runs").iterdir()]
    assert set(states) == {"interrupted"}
    assert list(out.glob("runs/*/checkpoints/checkpoint-*/trainer_state.json"))
