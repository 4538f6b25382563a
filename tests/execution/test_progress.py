"""Progress is shown in time, in plain lines without a terminal, and as one live line with one."""

import io
import logging
import sys
from itertools import pairwise

import pytest

from samesense.execution import progress
from samesense.execution.progress import progress_bar, stage
from samesense.execution.timing import Laps, clock_time, time_summary
from tests.messages import forget_listeners, listen


class Clock:
    """A clock that the test advances, for the bars and for the thread that watches them."""

    def __init__(self):
        self.at = 1000.0

    def __call__(self):
        return self.at

    def wait(self, seconds):
        """Pass time in steps of a second, with a look by the watching thread at each."""
        for _ in range(seconds):
            self.at += 1
            if progress._open:
                progress._open[-1].tell()


@pytest.fixture
def clock(monkeypatch):
    monkeypatch.setattr(progress, "now", clock := Clock())
    monkeypatch.setattr(progress, "TICK", 1e9)  # the thread sleeps; the test advances the clock
    monkeypatch.setattr(progress, "PATIENCE", 0.5)
    monkeypatch.setattr(progress, "_heard", clock.at)
    return clock


@pytest.fixture
def lines(clock):
    return listen()


def test_a_long_operation_speaks_at_once_and_then_at_least_every_ten_seconds(clock, lines):
    times = []
    with progress_bar("train", "step", 100, initial=40) as bar:
        for second in range(1, 61):
            clock.wait(1)
            if second % 3 == 0:  # a step takes three seconds
                bar.update()
            times += [clock.at] * (len(lines) - len(times))
    assert times[0] <= 1002 and max(b - a for a, b in pairwise(times)) < 10
    assert len(lines) < 12
    assert lines[0] == "train: 40 of 100 steps, 0:01 gone"
    assert lines[-1] == "train: 60 of 100 steps, 1:00 gone, about 2:00 left"


def test_one_is_counted_in_the_singular(clock):
    messages = []
    for unit, total in (("batch", 1), ("batch", 2), ("step", 1), ("text", None), ("B", 1_000_000)):
        with progress_bar("some", unit, total) as bar:
            messages.append(bar.line().partition(", ")[0])
    with progress_bar("some", "text") as bar:
        bar.update()
        messages.append(bar.line().partition(", ")[0])
    assert messages.pop() == "some: 1 text"
    assert messages == [
        f"some: 0 {count_text}" for count_text in ("of 1 batch", "of 2 batches", "of 1 step", "texts")
    ] + ["some: 0.0 of 1.0 MB"]


def test_it_speaks_too_while_one_step_takes_long(clock, lines):
    with progress_bar("harvest", "pair", 1000) as bar:
        clock.wait(30)
        bar.update(500)
    assert len(lines) == 5 and lines[2] == "harvest: 0 of 1,000 pairs, 0:17 gone"


def test_figures_stand_behind_the_count(clock, lines):
    with progress_bar("train", "step", 4) as bar:
        bar.set_postfix({"loss": "0.250", "dev": "81.20"})
        clock.wait(2)
    assert lines[-1] == "train: 0 of 4 steps, loss 0.250, dev 81.20, 0:01 gone"


def test_what_is_soon_over_says_nothing(clock, lines):
    with stage("loading"), progress_bar("encode", "text", 5) as bar:
        bar.update(5)
    assert lines == []


def test_the_innermost_is_shown_and_then_the_outer_again(clock, lines):
    with progress_bar("train", "step", 10):
        clock.wait(1)
        with stage("evaluation on dev"):
            clock.wait(9)
            with progress_bar("encode", "text", 90, leave=False, inner=True) as bar:
                bar.update(30)
                clock.wait(9)
        clock.wait(9)
    assert [line.split(",")[0] for line in lines] == [
        "train: 0 of 10 steps",
        "evaluation on dev",
        "encode (evaluation on dev): 0 of 90 texts",
        "encode (evaluation on dev): 30 of 90 texts",
        "train: 0 of 10 steps",
    ]


def test_inner_work_is_shown_only_within_what_does_not_count(clock, lines):
    with progress_bar("teacher", "sentence", 9), progress_bar("encode", "text", 9, inner=True):
        clock.wait(5)
    with progress_bar("encode", "text", 9, inner=True):
        clock.wait(5)
    assert lines == ["teacher: 0 of 9 sentences, 0:01 gone"]


def test_a_message_counts_as_said(clock, lines):
    with stage("samesense train"):
        for _ in range(20):
            clock.wait(1)
            progress.note_message()
    assert lines == ["samesense train, 0:01 so far"]


def test_a_library_user_sees_nothing_unasked(clock, capsys):
    forget_listeners()
    with stage("loading"), progress_bar("train", "step", 3) as bar:
        clock.wait(100)
        bar.update()
    assert capsys.readouterr().err == "" and not progress._open


def test_every_update_speaks_where_nothing_is_waited_for(clock, lines, monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0)
    monkeypatch.setattr(progress, "INTERVAL", 0)
    with progress_bar("count", "B", 4_000_000) as bar:
        for _ in range(4):
            bar.update(1_000_000)
    assert [line.split(",")[0] for line in lines] == [f"count: {done}.0 of 4.0 MB" for done in range(5)]


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_has_one_live_line(clock, monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := Terminal())
    logging.getLogger("samesense").setLevel(logging.INFO)
    with stage("samesense train"):
        clock.wait(2)
        with progress_bar("train", "step", 8) as bar:
            clock.wait(2)
            bar.update(3)
            bar.set_postfix({"loss": "0.5"})
            clock.wait(1)
            assert len(bar._drawn._instances) == 1
    printed = screen.getvalue()
    assert "samesense train" in printed and "3/8" in printed and "loss=0.5" in printed
    assert printed.count("\n") == 1  # the last visible line


def test_times_are_shown_with_what_they_count():
    laps = Laps()
    laps.count("loading")
    laps.add({"training": 3700.0, "evaluation": 30.4})
    laps.add({"evaluation": 29.6})
    assert laps.seconds == {"loading": laps.seconds["loading"], "training": 3700.0, "evaluation": 60.0}
    summary = time_summary({"training": 3700.0, "evaluation": 60.0})
    assert summary == "time: 1:02:40 in all: training 1:01:40, evaluation 1:00"
    assert clock_time(59.6) == "1:00"
