"""Properties of a completed tuple; and which texts count as the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from samesense.data.tuples.augment import augment_positives
from samesense.data.tuples.completion import Completion, key_of, normalize_text, sort_words
from samesense.data.tuples.convert import tuples_of_classes
from samesense.data.tuples.data import Group, tuple_data
from samesense.errors import DataError

words = st.text("abc ABC.", min_size=1, max_size=5).filter(str.strip)
partners = st.lists(words, max_size=6, unique=True)
anchors = st.lists(st.tuples(words, partners, partners), min_size=1, max_size=8)
negative_counts = st.integers(0, 7)


def made(rows):
    groups = [Group(anchor, positives, negatives, []) for anchor, positives, negatives in rows]
    return tuple_data(groups, source="made.jsonl", name="made.jsonl")


@settings(max_examples=150, deadline=None)
@given(anchors, st.integers(1, 7), negative_counts, st.integers(0, 3), st.sampled_from(["off", "same", "near"]))
def test_a_padded_tuple(rows, positives, negatives, epoch, false_negative_filter):
    data = made(rows)
    complete = Completion(
        data=data, positives=positives, negatives=negatives, seed=1, false_negative_filter=false_negative_filter
    )
    fold = sort_words if false_negative_filter == "near" else normalize_text
    for row, (anchor, positives_of_row, negatives_of_row) in enumerate(rows):
        pool = {fold(text) for _, near_, far in rows for text in near_ + far}
        taken = {fold(text) for text in [anchor, *positives_of_row]}
        try:
            left, right = complete(row, epoch)
        except DataError:
            free = pool - taken - {fold(text) for text in negatives_of_row}
            assert len(free) < negatives - len(negatives_of_row)  # too few other texts exist
            continue
        assert (len(left), len(right)) == (positives, negatives)
        own_positives = left[: len(positives_of_row)]
        assert set(own_positives) <= set(positives_of_row)
        assert len(set(own_positives)) == min(len(positives_of_row), positives)
        assert left[len(positives_of_row) :] == [anchor] * max(0, positives - len(positives_of_row))
        genuine = right[: len(negatives_of_row)]
        assert set(genuine) <= set(negatives_of_row)
        assert len(set(genuine)) == min(len(negatives_of_row), negatives)
        drawn = right[len(negatives_of_row) :]
        assert len({fold(text) for text in drawn}) == len(drawn)
        for text in drawn:  # a text of another anchor, and nothing that belongs to this one
            assert fold(text) not in taken | {fold(text) for text in genuine}
            assert any(text in near_ + far for index, (_, near_, far) in enumerate(rows) if index != row)
        assert (left, right) == complete(row, epoch)


def test_no_negative_of_an_anchor_is_of_its_class():
    texts = [f"text {i}" for i in range(60)]
    labels = [f"{i % 3}" for i in range(60)]
    data = tuples_of_classes(texts, labels, source="made", name="made")
    complete = Completion(data=data, positives=1, negatives=3)
    complete.check()
    for row, anchor in enumerate(data.anchors):
        assert {data.classes[text] for text in complete(row)[1]} <= {0, 1, 2} - {data.classes[anchor]}
    few = tuples_of_classes([*texts[::3], "other"], ["a"] * 20 + ["b"], source="made", name="made")
    with pytest.raises(DataError, match="3 negatives must be drawn from the texts of other anchors for 'text "):
        Completion(data=few, positives=1, negatives=3).check()


def test_no_negative_is_of_the_class_of_its_anchor_however_large_that_is():
    texts = [f"text {number}" for number in range(120)]
    labels = [str(number % 2) for number in range(120)]
    data = tuples_of_classes(texts, labels, source="made", name="made")
    assert {len(positives) for positives in data.positives} == {20}  # of 59 others
    complete = Completion(data=data, positives=1, negatives=3)
    for row, anchor in enumerate(data.anchors):
        assert {data.classes[text] for text in complete(row)[1]} == {1 - data.classes[anchor]}


def test_what_augmentation_makes_of_a_class_is_of_it():
    data = tuples_of_classes(["a b", "c d", "e f"], ["x", "x", "y"], source="made", name="made")
    augmented = augment_positives(data, lambda variants: [f"{text} new {number}" for text, number in variants], 3)
    assert {augmented.classes[text] for text in augmented.positives[0]} == {data.classes["a b"]}
    assert {augmented.classes[text] for text in augmented.positives[2]} == {data.classes["e f"]}
    of_another = augment_positives(data, lambda variants: ["e f" for _ in variants], 2)
    assert of_another.classes == data.classes  # existing texts keep their class


@settings(max_examples=50, deadline=None)
@given(anchors, st.integers(1, 7), negative_counts, st.integers(0, 3))
def test_a_ragged_tuple_has_nothing_but_its_own(rows, positives, negatives, epoch):
    rows = [
        (anchor, positives_of_row or ["p"], negatives_of_row) for anchor, positives_of_row, negatives_of_row in rows
    ]
    complete = Completion(data=made(rows), positives=positives, negatives=negatives, padded=False)
    for row, (_, positives_of_row, negatives_of_row) in enumerate(rows):
        left, right = complete(row, epoch)
        assert [len(left), len(right)] == [min(len(positives_of_row), positives), min(len(negatives_of_row), negatives)]
        assert set(left) <= set(positives_of_row)
        assert set(right) <= set(negatives_of_row)
        assert [text for text in positives_of_row if text in left] == left  # in their order


MANY = [(f"anchor {number}", [f"p{number}-{k}" for k in range(9)], [f"n{number}"]) for number in range(30)]


def test_another_epoch_another_draw_unless_fixed():
    drawn, fixed = (Completion(data=made(MANY), positives=3, negatives=4, fixed=f) for f in (False, True))
    rows = range(30)
    assert [drawn(row, 0) for row in rows] == [fixed(row, 5) for row in rows]
    assert [drawn(row, 0) for row in rows] != [drawn(row, 1) for row in rows]
    other_seed = Completion(data=made(MANY), positives=3, negatives=4, seed=1)
    assert [drawn(row, 0) for row in rows] != [other_seed(row, 0) for row in rows]
    chosen = {text for epoch in range(40) for text in drawn(3, epoch)[0]}
    assert chosen == set(MANY[3][1])  # over many epochs each text is drawn


def test_too_few_texts_to_draw_from():
    data = made([("a", ["b"], ["c"]), ("d", ["B"], ["e"])])
    assert sorted(Completion(data=data, positives=1, negatives=2)(0)[1]) == ["c", "e"]
    with pytest.raises(DataError) as error:
        Completion(data=data, positives=1, negatives=3)(0)
    assert str(error.value) == (
        "made.jsonl: 2 negatives must be drawn from the texts of other anchors for 'a', and these have 1 different "
        "ones. Give more data, or take fewer negatives."
    )
    with pytest.raises(DataError, match="an anchor needs a positive where nothing is filled up, and 1 of 2 have none"):
        Completion(data=made([("a", ["b"], []), ("c", [], ["d"])]), positives=1, negatives=1, padded=False)


@settings(max_examples=150, deadline=None)
@given(anchors, st.integers(1, 7), negative_counts, st.sampled_from(["same", "near"]))
def test_a_check_finds_beforehand_what_a_call_would(rows, positives, negatives, false_negative_filter):
    complete = Completion(
        data=made(rows), positives=positives, negatives=negatives, false_negative_filter=false_negative_filter
    )

    def works(ask):
        try:
            ask()
        except DataError:
            return False
        return True

    assert works(complete.check) == works(lambda: [complete(row) for row in range(len(rows))])


def test_when_texts_count_as_the_same():
    assert normalize_text("A  Man\tEATS ") == normalize_text("a man eats") != normalize_text("a man eats.")
    assert sort_words("Tom hit Ann.") == sort_words("ann hit, Tom") == sort_words("hit ann tom")
    assert sort_words("tom hit ann ann") != sort_words("tom hit ann")
    assert sort_words("?!") != sort_words("!!")  # without words the text itself
    texts = [f"text {number}" for number in range(20_000)]
    assert len({key_of("same")(text) for text in texts}) == len(texts)
    assert all(0 <= key_of("near")(text) < 2**63 for text in texts[:100])
    assert key_of("off")("A b") == key_of("same")("a  B") != key_of("same")("b a")
    assert key_of("near")("A b") == key_of("near")("b a")
