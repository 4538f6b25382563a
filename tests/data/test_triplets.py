"""Triplets and hard negatives: against slow loops over all rows, with many duplicates and contradictions."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from samesense.data.pairs.triplets import form_positive_pairs, form_triplets
from tests.data.made import BINARY, DATA, NLI, SCORED, pair_data

ROOT = Path(__file__).parents[2]


def slow_partners(data, anchor):
    """Return the positive and negative partners of an anchor, each once, in order of appearance."""
    highest = 2.0 if data.kind == "nli" else 1.0
    sides = {highest: [], 0.0: []}
    for first, second, label in zip(data.sentences1, data.sentences2, data.labels, strict=True):
        for first_text, partner in [(first, second)] + [(second, first)] * (data.kind == "binary"):
            if first_text == anchor and partner != anchor and label in sides and partner not in sides[label]:
                sides[label].append(partner)
    both = set(sides[highest]) & set(sides[0.0])
    return tuple([text for text in sides[label] if text not in both] for label in (highest, 0.0))


@pytest.mark.parametrize("kind", ["binary", "nli", "triplet"])
def test_triplets_are_all_that_can_be_formed(kind):
    data = DATA[kind]
    formed = form_triplets(data)
    rows = list(zip(*formed.columns.values(), strict=True))
    anchors = dict.fromkeys([*data.sentences1, *data.sentences2])
    expected = []
    for anchor in anchors:
        near, far = slow_partners(data, anchor)
        if near and far:
            count = max(len(near), len(far))
            expected += [(anchor, near[i % len(near)], far[i % len(far)]) for i in range(count)]
    assert sorted(rows) == sorted(expected)
    assert len(rows) > 50
    assert len(set(rows)) == len(rows) or kind != "nli"
    assert formed.negatives == len(rows)
    inside = set()
    for row, (first, second) in enumerate(data.pairs()):
        label = data.labels[row]
        highest = max(data.labels)
        for text, partner in [(first, second)] + [(second, first)] * (kind == "binary"):
            near, far = slow_partners(data, text)
            if near and far and ((label == highest and partner in near) or (label == 0 and partner in far)):
                inside.add(row)
    assert formed.unused == len(data) - len(inside)


def test_triplets_do_not_depend_on_the_order_of_sets():
    code = (
        "from tests.data.made import BINARY, NLI; from samesense.data.pairs.triplets import form_triplets; "
        "print([form_triplets(data) for data in (BINARY, NLI)])"
    )
    summaries = [
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert summaries[0] == summaries[1] != ""


def test_a_binary_pair_gives_either_of_its_sentences_as_anchor():
    data = pair_data([("cat", "feline", 1.0), ("dog", "cat", 0.0), ("bird", "dog", 1.0)], "binary")
    rows = list(zip(*form_triplets(data).columns.values(), strict=True))
    assert rows == [("cat", "feline", "dog"), ("dog", "bird", "cat")]
    directed = pair_data([("cat", "feline", 2.0), ("dog", "cat", 0.0), ("bird", "dog", 2.0)], "nli")
    assert len(form_triplets(directed)) == 0


def test_partners_given_both_ways_are_neither():
    rows = [("a", "b", 2.0), ("a", "b", 0.0), ("a", "c", 2.0), ("a", "d", 0.0), ("a", "a", 0.0), ("a", "e", 1.0)]
    formed = form_triplets(pair_data(rows, "nli"))
    assert list(zip(*formed.columns.values(), strict=True)) == [("a", "c", "d")]
    assert formed.unused == 4


@pytest.mark.parametrize("data", [BINARY, NLI], ids=["binary", "nli"])
def test_hard_negatives_are_the_anchors_own(data):
    highest = max(data.labels)
    formed = form_positive_pairs(data, above=highest - 0.5, hard_negatives=True)
    columns = formed.columns
    pairs = [
        (a, b) for a, b, label in zip(data.sentences1, data.sentences2, data.labels, strict=True) if label == highest
    ]
    assert list(zip(columns["anchor"], columns["positive"], strict=True)) == pairs
    uses = dict.fromkeys(columns["anchor"], 0)
    marks = columns.get("label", [1] * len(pairs))
    for anchor, positive, negative, counts in zip(
        columns["anchor"], columns["positive"], columns["negative"], marks, strict=True
    ):
        far = slow_partners(data, anchor)[1]
        assert bool(counts) == bool(far)
        assert negative == (far[uses[anchor] % len(far)] if far else positive)
        uses[anchor] += 1
    assert formed.negatives == sum(marks)


def test_some_all_or_no_anchors_have_a_negative():
    rows = [("a", "b", 2.0), ("c", "d", 2.0), ("a", "x", 0.0)]
    some = form_positive_pairs(pair_data(rows, "nli"), above=1.5, hard_negatives=True)
    assert some.columns == {"anchor": ["a", "c"], "positive": ["b", "d"], "negative": ["x", "d"], "label": [1, 0]}
    assert (some.negatives, some.unused) == (1, 0)
    every = form_positive_pairs(pair_data([rows[0], rows[2]], "nli"), above=1.5, hard_negatives=True)
    assert every.columns == {"anchor": ["a"], "positive": ["b"], "negative": ["x"]}
    none = form_positive_pairs(pair_data(rows[:2], "nli"), above=1.5, hard_negatives=True)
    assert none.columns == {"anchor": ["a", "c"], "positive": ["b", "d"]}


def test_scores_give_no_hard_negatives():
    assert set(form_positive_pairs(SCORED, above=2.5, hard_negatives=True).columns) == {"anchor", "positive"}


def test_real_sizes_take_no_time_quadratic_in_the_rows():
    source = random.Random(3)
    rows = [(f"p{source.randrange(4000)}", f"h{i}", float(source.randrange(3))) for i in range(24000)]
    formed = form_triplets(pair_data(rows, "nli"))
    assert 2000 < len(formed) < 24000
