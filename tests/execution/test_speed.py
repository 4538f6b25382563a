"""Speeds in turns: what a round is, ranges that overlap, and a machine that is not quiet."""

import os

import pytest

from samesense.execution import speed as speed_module
from samesense.execution.speed import ROUNDS, Speed, time_in_turns


@pytest.fixture
def clock(monkeypatch):
    """A clock that only work moves."""
    times = [0.0]
    monkeypatch.setattr(speed_module.time, "perf_counter", lambda: times[0])
    monkeypatch.setattr(os, "getloadavg", lambda: (0.1, 0.1, 0.1), raising=False)
    return times


def worker(name, seconds, clock, turns):
    """Read 10 texts in the given seconds, which change from call to call."""
    left = list(seconds)

    def run():
        turns.append(name)
        clock[0] += left.pop(0) if len(left) > 1 else left[0]
        return 10

    return run


def test_every_round_has_each_candidate_once_in_either_order(clock):
    turns = []
    speeds, disturbed = time_in_turns([worker("a", [1.0], clock, turns), worker("b", [2.0], clock, turns)])
    assert ROUNDS >= 3
    assert "".join(turns).startswith("abbaab")
    assert [(speed.low, speed.median, speed.high) for speed in speeds] == [(10.0, 10.0, 10.0), (5.0, 5.0, 5.0)]
    assert disturbed == ""


def test_a_round_is_as_long_as_it_is_asked_to_be(clock, measured):
    turns = []
    [speed], _ = time_in_turns([worker("a", [1.0], clock, turns)], rounds=3, seconds=4.0)
    assert (len(turns), speed.rounds) == (12, (10.0, 10.0, 10.0))


def test_rounds_that_differ_are_said_to_be_disturbed(clock):
    [speed], disturbed = time_in_turns([worker("a", [1.0, 1.0, 2.0, 1.0, 1.0], clock, [])])
    assert (speed.low, speed.median, speed.high) == (5.0, 10.0, 10.0)
    assert disturbed == "rounds of one model differ by up to 50 %"


def test_a_load_of_others_is_said(clock, monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (5.06, 1.0, 1.0), raising=False)
    monkeypatch.setattr(speed_module, "cores", lambda: 2)
    _, disturbed = time_in_turns([worker("a", [1.0], clock, [])])
    assert disturbed == "5.1 processes wanted 2 processors when it began"


@pytest.mark.parametrize(
    ("first", "second", "overlap"),
    [
        ((1, 2, 3), (3, 4, 5), True),
        ((1, 2, 3), (4, 5, 6), False),
        ((4, 5, 6), (1, 2, 3), False),
        ((1, 9, 5), (2, 3, 4), True),
    ],
)
def test_ranges_overlap_where_one_round_is_as_fast(first, second, overlap):
    assert Speed(first).overlaps(Speed(second)) is overlap
