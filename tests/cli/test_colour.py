"""Colour is for terminals that want it: elsewhere no command writes an escape code."""

import os
import subprocess
import sys

import pytest

from samesense.cli.colour import BOLD, CYAN, DIM, GREEN, RED, YELLOW, painted

pty = pytest.importorskip("pty")  # not on Windows

SCRIPT = """
import logging, sys
from samesense.cli.main import main
from samesense.cli.output import log_conclusion, show_messages
from samesense.reports.run_verdict import Finding, Verdict

task = Finding(role="test", dataset="test.tsv", n=60, metric="spearman", start=0.5, end=0.6, low=0.05, high=0.15,
               p_value=0.001)
guard = Finding(role="guard", dataset="guard.tsv", n=60, metric="spearman", start=0.5, end=0.4, low=-0.15, high=-0.05,
                p_value=0.001)
show_messages()
log_conclusion([*Verdict(task=task, guards=(guard,)).lines(), "report: runs/a/report.html"])
logging.getLogger("samesense").info("next: samesense train PAIRS")
main(["doctor", "absent.tsv"])
"""

PLAIN = [
    "verdict: better than the start on test.tsv, 60 examples",
    "Spearman x100      start  trained  difference    95 % interval      p",
    "-----------------  -----  -------  ----------  ---------------  -----  ------",
    "test.tsv           50.00    60.00      +10.00  +5.00 to +15.00  0.001  better",
    "guard.tsv (guard)  50.00    40.00      -10.00  -15.00 to -5.00  0.001  worse",
    "warning: guard: WORSE than the start on guard.tsv, 60 examples",
    "report: runs/a/report.html",
    "next: samesense train PAIRS",
]


class Terminal:
    def isatty(self):
        return True


@pytest.fixture
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return Terminal()


def colour(code, text):
    return f"\x1b[{code}m{text}\x1b[0m"


def environment(changes):
    return {**{name: value for name, value in os.environ.items() if name != "NO_COLOR"}, **changes}


def on_a_terminal(**changes):
    """What the script writes to standard error where that is a terminal, line by line."""
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT], stderr=theirs, stdout=theirs, env=environment({"TERM": "xterm", **changes})
    ) as child:
        os.close(theirs)
        written = b""
        while True:
            try:
                block = os.read(ours, 4096)
            except OSError:  # the other end is closed
                break
            if not block:
                break
            written += block
    os.close(ours)
    assert child.returncode == 2
    return written.decode().splitlines()


def test_a_terminal_shows_verdicts_warnings_places_and_commands_in_colour():
    *lines, error = on_a_terminal()
    assert lines == [
        PLAIN[0].replace("better", colour(GREEN, "better")),
        *PLAIN[1:3],
        PLAIN[3].replace("better", colour(GREEN, "better")),
        PLAIN[4].replace("worse", colour(RED, "worse")),
        PLAIN[5].replace("warning:", colour(YELLOW, "warning:")).replace("WORSE", colour(RED, "WORSE")),
        f"report: {colour(CYAN, 'runs/a/report.html')}",
        f"next: {colour(BOLD, 'samesense train PAIRS')}",
    ]
    assert error.startswith(colour(RED, "samesense: error:"))


@pytest.mark.parametrize("changes", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": ""}])
def test_a_terminal_that_wants_none_has_none(changes):
    *lines, error = on_a_terminal(**changes)
    assert lines == PLAIN and error.startswith("samesense: error: ")


def test_a_pipe_has_none():
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT], capture_output=True, text=True, env=environment({"TERM": "xterm"}), check=False
    )
    *lines, error = ended.stderr.splitlines()
    assert (lines, ended.stdout) == (PLAIN, "") and error.startswith("samesense: error: ")


def test_an_empty_no_color_is_none(terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "")
    assert painted("no verdict: none", terminal) == f"{colour(DIM, 'no verdict')}: none"
    monkeypatch.setenv("NO_COLOR", "0")
    assert painted("no verdict: none", terminal) == "no verdict: none"


@pytest.mark.parametrize(
    "line",
    [
        "train: 3 of 8 steps, loss 0.5",
        "a better model",
        "worse",
        "the report: nothing",
        "the samesense: error: of others",
        "said  better still",
        "",
        "no difference",
    ],
)
def test_other_lines_stay_as_they_are(terminal, line):
    assert painted(line, terminal) == line


def test_lines_keep_their_words(terminal):
    assert painted("test.tsv  0.5  no difference", terminal) == f"test.tsv  0.5  {colour(DIM, 'no difference')}"
    guard = painted("verdict: no difference from the start on test.tsv, 60 examples", terminal)
    assert guard == f"verdict: {colour(DIM, 'no difference')} from the start on test.tsv, 60 examples"
    assert painted("  samesense mine a.txt", terminal) == f"  {colour(BOLD, 'samesense mine a.txt')}"
