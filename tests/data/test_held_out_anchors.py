"""Anchors held out of training: whole groups that share texts, by content and seed."""

from itertools import chain

from samesense.data.tuples.data import Group, tuple_data
from samesense.data.tuples.held_out import FEWEST, MOST, MOST_CANDIDATES, hold_out_anchors


def anchors(*rows):
    """Return anchors of tuples: text, positives and negatives."""
    return tuple_data([Group(row[0], list(row[1]), list(row[2]), []) for row in rows], source="made", name="made")


def apart(count):
    return anchors(*((f"question {number}", [f"answer {number}"], [f"lure {number}"]) for number in range(count)))


def test_a_fifth_of_few_and_a_tenth_of_many_is_held_out():
    for count, held in ((100, 20), (500, 100), (3000, 300)):
        train = hold_out_anchors(apart(count), seed=1)
        assert (len(train), len(train.held_out.data)) == (count - held, held)
    assert len(hold_out_anchors(apart(8000), seed=1).held_out.data) == MOST


def test_held_out_texts_are_not_trained_on_and_each_positive_is_a_candidate():
    data = apart(300)
    train = hold_out_anchors(data, seed=1)
    held_out = train.held_out
    assert set(held_out.data.anchors).isdisjoint(train.anchors)
    own = set(chain.from_iterable(held_out.data.positives))
    assert own.isdisjoint(chain.from_iterable(train.positives))
    assert own <= set(held_out.candidates)
    assert len(held_out.candidates) == len(set(held_out.candidates)) == 2 * len(held_out.data)  # and their lures
    assert held_out.description == f"held out, each to find its positives among {2 * len(held_out.data)} texts"
    whole = train.with_held_out()
    assert sorted(whole.anchors) == sorted(data.anchors)
    assert whole.held_out is None


def test_negatives_that_are_trained_on_are_no_candidates():
    """Each lure is the answer to another question."""
    rows = [(f"question {number}", [f"answer {number}"], [f"answer {(number + 7) % 300}"]) for number in range(300)]
    train = hold_out_anchors(anchors(*rows), seed=1)
    trained = set(chain.from_iterable([*train.positives, *train.negatives]))
    positives = list(chain.from_iterable(train.held_out.data.positives))
    assert sorted(train.held_out.candidates) == sorted(positives)
    assert trained & set(chain.from_iterable(train.held_out.data.negatives))


def test_the_seed_and_the_texts_decide_and_not_their_order():
    data = apart(300)
    chosen = set(hold_out_anchors(data, seed=1).held_out.data.anchors)
    turned = set(hold_out_anchors(data.take(range(299, -1, -1)), seed=1).held_out.data.anchors)
    assert chosen == turned
    assert chosen != set(hold_out_anchors(data, seed=2).held_out.data.anchors)


def test_anchors_that_share_a_positive_stay_together():
    rows = [(f"question {number}", [f"answer {number // 2}"], []) for number in range(400)]
    train = hold_out_anchors(anchors(*rows), seed=1)
    held_out = set(train.held_out.data.anchors)
    assert all(
        (first[0] in held_out) == (second[0] in held_out) for first, second in zip(rows[::2], rows[1::2], strict=True)
    )


def test_where_all_share_positives_the_anchors_alone_are_held_out():
    for answers in (3, 20):  # twenty could be held out as groups, of which four would have to be told apart
        rows = [(f"question {number}", [f"answer {number % answers}"], []) for number in range(500)]
        train = hold_out_anchors(anchors(*rows), seed=1)
        assert len(train.held_out.data) == 100
        assert set(train.held_out.data.anchors).isdisjoint(train.anchors)
        assert set(train.held_out.candidates) == {f"answer {number}" for number in range(answers)}
        ending = f"{answers} texts; these positives are trained on too, as anchors share them"
        assert train.held_out.description.endswith(ending)


def test_of_too_few_none_is_held_out_and_the_reason_says_so():
    data = apart(99)
    train = hold_out_anchors(data, seed=1)
    assert len(train) == 99 == len(train.with_held_out())
    assert train.held_out.data is None
    assert f"a verdict takes {FEWEST} anchors held out, a fifth at most, and there are 99" in train.held_out.reason


def test_candidates_are_limited():
    rows = [
        (f"question {number}", [f"answer {number}"], [f"{number} lure {other}" for other in range(30)])
        for number in range(800)
    ]
    train = hold_out_anchors(anchors(*rows), seed=1)
    assert len(train.held_out.candidates) == MOST_CANDIDATES
    assert set(chain.from_iterable(train.held_out.data.positives)) <= set(train.held_out.candidates)
