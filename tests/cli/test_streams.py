"""Standard streams that are closed, full or without a reader: the work is done, and the exit code is right."""

import json
import os
import shlex
import subprocess
import sys

import pytest

from tests.command import run_command

pytestmark = pytest.mark.posix

SAMESENSE = f"{shlex.quote(sys.executable)} -m samesense"
CLOSED = (">&- 2>&-", ">&-", "<&- >&- 2>&-", "<&-", "2>/dev/full")
TEXTS = "a man eats\na dog runs\na man eats\n"


@pytest.fixture
def shell(tmp_path):
    """A function that runs a line of the shell here; returns exit code, output and errors."""
    (tmp_path / "t.txt").write_text(TEXTS)
    (tmp_path / "w.vec").write_text("a 1 2\nman 3 1\ndog 2 2\neats 1 -3\nruns -2 2\n")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(line):
        words = ["bash", "-c", line.replace("samesense", SAMESENSE, 1)]
        ended = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path, env=environment)
        return ended.returncode, ended.stdout, ended.stderr

    return run


@pytest.mark.parametrize("closed", ["2>&-", *(pytest.param(closed, marks=pytest.mark.slow) for closed in CLOSED)])
def test_with_closed_streams_the_work_is_done(shell, tmp_path, closed):
    code, _, err = shell(f"samesense dedup t.txt --model words:w.vec --threshold 0.99 --output kept.txt {closed}")
    assert (code, "Traceback" in err) == (0, False), err
    assert (tmp_path / "kept.txt").read_text() == "a man eats\na dog runs\n", "no words for people are in it"


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-", ">&-", "2>/dev/full"])
def test_with_closed_streams_misuse_has_its_code(shell, closed):
    code, out, err = shell(f"samesense doctor no-such-file.txt {closed}")
    assert (code, out, "Traceback" in err) == (2, "", False)


def test_output_goes_where_errors_cannot(shell):
    assert shell("samesense doctor t.txt 2>&-")[1].startswith("t.txt: 2 texts")


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_texts_are_written_as_utf_8_whatever_the_locale_says(shell, tmp_path, encoding):
    (tmp_path / "pl.txt").write_text("a man idzie spać\na man 中文\n", encoding="utf-8")
    code, _, err = shell(f"PYTHONIOENCODING={encoding} samesense mine pl.txt --model words:w.vec --top 1 >mined")
    assert (code, "Traceback" in err) == (0, False), err
    assert "a man idzie spać\ta man 中文" in (tmp_path / "mined").read_text(encoding="utf-8")


def test_python_without_docstrings_is_refused(shell):
    code, out, err = shell("PYTHONOPTIMIZE=2 samesense doctor t.txt")
    assert (code, out, "Traceback" in err) == (2, "", False)
    assert "-OO" in err and "PYTHONOPTIMIZE=2" in err


@pytest.mark.parametrize("width", ["0", "3"])
def test_a_help_ends_on_a_terminal_without_a_width(shell, width):
    code, out, _ = shell(f"COLUMNS={width} samesense doctor --help")
    assert (code, "--against" in out) == (0, True)


def test_a_device_is_no_missing_file(shell):
    assert "/dev/null: this is no file, but a device" in shell("samesense doctor /dev/null")[2]


def test_the_home_of_no_user_is_no_file(shell):
    for line in (
        "samesense doctor '~no-such-user/x.csv'",
        "samesense dedup t.txt --model words:w.vec -o '~no-such-user/x'",
    ):
        code, _, err = shell(line)
        assert (code, "Traceback" in err) == (2, False), err


def test_a_full_disk_is_said_and_a_reader_that_left_is_none(shell):
    code, _, err = shell("samesense doctor t.txt >/dev/full")
    assert code == 2 and "No space left" in err and "Exception ignored" not in err
    code, out, err = shell("samesense doctor t.txt | true; echo ${PIPESTATUS[0]}")
    assert (out, err) == ("0\n", "")
    assert shell("samesense --help | true; echo ${PIPESTATUS[0]}")[1:] == ("0\n", "")
    code, out, err = shell("samesense doctor t.txt 2>&1 >kept | true; echo ${PIPESTATUS[0]}")
    assert (out, err) == ("0\n", "")


@pytest.mark.parametrize(
    "command",
    ["mine t.txt --model words:w.vec --top 1", "dedup t.txt --model words:w.vec", "explain words:w.vec TEXT TEXT"],
)
def test_a_terminal_is_not_sent_the_control_characters_of_texts(tmp_path, capsys, monkeypatch, command):
    text = "man \x1b[31m\x9b1m\x7f eats"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.txt").write_text(f"{text}\n{text}\n", encoding="utf-8")
    (tmp_path / "w.vec").write_text("man 3 1\neats 1 -3\n")
    words = [text if word == "TEXT" else word for word in command.split()]
    _, plain, _ = run_command(capsys, *words)
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    _, shown, err = run_command(capsys, *words)
    assert "\\u001b" in shown and not set("\x1b\x9b\x7f") & {*shown, *err}
    if words[0] == "mine":
        assert plain.split("\t")[1] == text, "a program gets the text as it is"
        assert shown.split("\t")[1] == "man \\u001b[31m\\u009b1m\\u007f eats"
        _, lines, _ = run_command(capsys, *words, "--json")
        assert json.loads(lines)["text1"] == text


def test_messages_show_control_characters(capsys):
    code, _, err = run_command(capsys, "similarity", "words:no\x1b[31m.vec", "a", "b")
    assert code == 2 and "no\\u001b[31m.vec" in err and "\x1b[31m" not in err


@pytest.fixture
def files(tmp_path, monkeypatch):
    (tmp_path / "t.txt").write_text(TEXTS)
    (tmp_path / "w.vec").write_text("a 1 2\nman 3 1\n")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ("doctor -- t.txt", "2 texts"),
        ("-- doctor t.txt", "2 texts"),
        ("similarity words:w.vec -- --a man", "0.7071"),
        ("similarity words:w.vec -- --a --man", "0.7071"),
        ("similarity words:w.vec -a -man", "0.7071"),
        ("dedup --model words:w.vec -- t.txt", "man"),
    ],
)
def test_two_hyphens_end_the_options(files, capsys, words, outcome):
    code, out, err = run_command(capsys, *words.split())
    assert code == 0 and outcome in out, err


def test_a_text_of_several_words_is_no_option(files, capsys):
    assert run_command(capsys, "similarity", "words:w.vec", "- a", "--a man is -- a man")[0] == 0


BEHIND = ("dedup -- t.txt --model words:w.vec", "dedup t.txt -- --threshold 0.9", "dedup t.txt -- --threshold=0.9")


@pytest.mark.parametrize("words", BEHIND)
def test_an_option_behind_them_is_told_to_stand_before(files, capsys, words):
    code, _, err = run_command(capsys, *words.split())
    assert code == 2 and "Did you mean" not in err
    assert "is after --, where all words are texts or files. Put options before --." in err


def test_no_suggestion_is_what_was_given(files, capsys):
    for flag in ("--model", "--threshold", "--nonsense", "--mdel"):
        code, _, err = run_command(capsys, "doctor", "t.txt", flag, "x")
        assert code == 2 and f"Did you mean {flag}?" not in err
