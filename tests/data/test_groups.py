"""Grouping: against a plain dict, in any order of rows."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from samesense.data.conflicts import Conflict
from samesense.data.tuples.data import Group, Statement, counts_table, group_statements

SIDES = ("positive", "neutral", "negative")


def plain(rows):
    """Group the rows with a dict of lists."""
    by_group = {}
    for group, anchor, partner, side, number in rows:
        statements = by_group.setdefault(group, (anchor, []))[1]
        statements.append((partner, side, number))
    groups = []
    for anchor, statements in by_group.values():
        by_side = {side: [] for side in SIDES}
        itself = repeated = 0
        for partner, side, _ in statements:
            if partner == anchor:
                itself += 1
            elif partner in by_side[side]:
                repeated += 1
            else:
                by_side[side].append(partner)
        both = [text for text in by_side["positive"] if text in by_side["negative"]]
        texts = [[text for text in by_side[side] if text not in both] for side in ("positive", "negative")]
        conflicts = [
            Conflict(
                [n for text, _, n in statements if text == conflicting],
                [anchor, conflicting],
                [side for text, side, _ in statements if text == conflicting],
            )
            for conflicting in both
        ]
        groups.append(Group(anchor, *texts, by_side["neutral"], conflicts, repeated, itself))
    return groups


def drawn(rows, anchors=40, partners=30, seed=0):
    source = random.Random(seed)
    names = [f"premise {number} ü\n" for number in range(anchors)]
    texts = [*(f"text {number}" for number in range(partners)), *names]
    picked = [source.choice(names) for _ in range(rows)]
    return [Statement(name, name, source.choice(texts), source.choice(SIDES), row) for row, name in enumerate(picked)]


def test_equals_the_dict():
    rows = drawn(1000)
    groups = list(group_statements(iter(rows)))
    assert groups == plain(rows)
    assert sum(len(group.conflicts) for group in groups) > 10
    assert sum(group.repeated for group in groups) > 10
    assert sum(group.itself for group in groups) > 5


rows_of = st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abcdefgh"), st.sampled_from(SIDES)), max_size=60)


@settings(max_examples=40, deadline=None)
@given(rows_of)
def test_equals_the_dict_on_anything(statements):
    rows = [Statement(anchor, anchor, partner, side, row) for row, (anchor, partner, side) in enumerate(statements)]
    assert list(group_statements(rows)) == plain(rows)


def test_rows_of_a_group_need_not_stand_together():
    rows = [
        Statement("a", "a", "1", "positive"),
        Statement("b", "b", "2", "negative"),
        Statement("a", "a", "3", "negative"),
    ]
    assert list(group_statements(rows)) == [Group("a", ["1"], ["3"], []), Group("b", [], ["2"], [])]


def test_counts_are_those_of_the_paper_on_the_diagonal():
    sizes = [(1, 1), (1, 1), (2, 4), (3, 2), (5, 9), (0, 1), (4, 0), (1, 5)]
    table = counts_table(["x" * p for p, _ in sizes], ["x" * n for _, n in sizes])
    assert [line.split()[-4:] for line in table[1:]] == [
        ["0", "1", "0", "0"],
        ["0", "2", "0", "1"],
        ["1", "0", "2", "0"],
        ["0", "0", "0", "1"],
    ]
    assert len({len(line) for line in table}) == 1
