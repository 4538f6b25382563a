"""Grouping: against a plain dict, in any order of rows and within any bound of memory."""

import json
import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samesense.data.tuples import groups
from samesense.data.tuples.data import counts_table
from samesense.data.tuples.groups import Group, Statement, grouped, write_groups

SIDES = ("positive", "neutral", "negative")


def plain(rows):
    """The same with a dict of lists."""
    found = {}
    for group, anchor, partner, side in rows:
        own = found.setdefault(group, (anchor, []))[1]
        own.append((partner, side))
    made = []
    for anchor, own in found.values():
        said = {side: [] for side in SIDES}
        itself = repeated = 0
        for partner, side in own:
            if partner == anchor:
                itself += 1
            elif partner in said[side]:
                repeated += 1
            else:
                said[side].append(partner)
        both = [text for text in said["positive"] if text in said["negative"]]
        kept = [[text for text in said[side] if text not in both] for side in ("positive", "negative")]
        made.append(Group(anchor, *kept, said["neutral"], len(both), repeated, itself))
    return made


def drawn(rows, anchors=40, partners=30, seed=0):
    source = random.Random(seed)
    names = [f"premise {at} ü\n" for at in range(anchors)]
    texts = [*(f"text {at}" for at in range(partners)), *names]
    picked = [source.choice(names) for _ in range(rows)]
    return [Statement(name, name, source.choice(texts), source.choice(SIDES)) for name in picked]


@pytest.mark.parametrize("most_rows", [1, 7, 100, 999, 1000, 10**6])
def test_equals_the_dict_within_any_bound(most_rows, tmp_path):
    rows = drawn(1000)
    made = list(grouped(iter(rows), most_rows=most_rows, folder=tmp_path))
    assert made == plain(rows)
    assert sum(group.contradictory for group in made) > 10
    assert sum(group.repeated for group in made) > 10
    assert sum(group.itself for group in made) > 5
    assert list(tmp_path.iterdir()) == []  # no temporary file is left


rows_of = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcdefgh"), st.sampled_from(SIDES)), max_size=60)


@settings(max_examples=40, deadline=None)
@given(rows_of, st.integers(1, 70))
def test_equals_the_dict_on_anything(said, most_rows):
    rows = [Statement(anchor, anchor, partner, side) for anchor, partner, side in said]
    assert list(grouped(rows, most_rows=most_rows)) == plain(rows)


def test_rows_of_a_group_need_not_stand_together(tmp_path):
    rows = [Statement("a", "a", "1", "positive"), Statement("b", "b", "2", "negative"),
            Statement("a", "a", "3", "negative")]  # fmt: skip
    for most in (1, 3):
        assert list(grouped(rows, most_rows=most)) == [Group("a", ["1"], ["3"], []), Group("b", [], ["2"], [])]


def test_files_that_are_still_too_large_are_dealt_again(monkeypatch):
    monkeypatch.setattr(groups, "PARTS", 2)
    rows = drawn(600, anchors=50)
    assert list(grouped(rows, most_rows=20)) == plain(rows)


def test_memory_is_that_of_the_bound_and_not_of_the_data():
    """With a bound of 500 rows, the peak is far below that without one, and twice the data hardly change it."""

    def peak(rows, most_rows):
        made = (
            Statement(
                f"premise {at % (rows // 4)} of some length", "", f"a hypothesis of its own, number {at}", "positive"
            )
            for at in range(rows)
        )
        tracemalloc.start()
        count = sum(1 for _ in grouped(made, most_rows=most_rows))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert count == rows // 4
        return found

    bounded, unbounded = peak(6_000, 500), peak(6_000, 6_000)
    assert bounded < unbounded / 2
    assert bounded < 1.5 * peak(3_000, 500)


def test_groups_are_written_one_by_one(tmp_path):
    path = tmp_path / "groups.jsonl"
    assert write_groups(iter(plain(drawn(50))), path) == len(plain(drawn(50)))
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line["positives"] for line in lines] == [group.positives for group in plain(drawn(50))]


def test_counts_are_those_of_the_paper_on_the_diagonal():
    sizes = [(1, 1), (1, 1), (2, 4), (3, 2), (5, 9), (0, 1), (4, 0), (1, 5)]
    table = counts_table(["x" * p for p, _ in sizes], ["x" * n for _, n in sizes])
    assert [line.split()[-4:] for line in table[1:]] == [
        ["0", "1", "0", "0"], ["0", "2", "0", "1"], ["1", "0", "2", "0"], ["0", "0", "0", "1"],
    ]  # fmt: skip
    assert len({len(line) for line in table}) == 1
