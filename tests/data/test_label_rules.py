"""The meaning of labels: kinds, scales, classes of inference, and refused labels."""

import json

import pytest

from samesense.data import examine, read_pairs
from samesense.data.conventions.numbers import percent_text, to_number
from samesense.data.conventions.scales import infer_scale
from samesense.errors import ConfigError, DataError
from samesense.losses.registry import PAIR_LOSSES
from samesense.recipes.reading import Reading

SCORED = ("sentence1", "sentence2", "score")
NLI = ("premise", "hypothesis", "label")
GOLD = ("a", "b", "gold")


def pairs(tmp_path, labels, names=SCORED, **options):
    path = tmp_path / "pairs.jsonl"
    rows = [dict(zip(names, (f"a {i}", f"b {i}", label), strict=True)) for i, label in enumerate(labels)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return read_pairs(path, **options)


def refusal(error, *arguments, **options):
    with pytest.raises(error) as caught:
        pairs(*arguments, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("value", "number"),
    [("3.75", 3.75), (" 1e-1 ", 0.1), ("-.5", -0.5), (True, 1.0), ("False", 0.0), (2, 2.0), ("not_duplicate", 0.0)],
)
def test_numbers_are_understood(value, number):
    assert to_number(value) == number


@pytest.mark.parametrize("value", ["nan", "inf", "1e400", "1_0", "", "four", None, float("nan"), 10**400, [1]])
def test_what_is_no_finite_number_is_none(value):
    assert to_number(value) is None


@pytest.mark.parametrize(
    ("numbers", "scale"),
    [
        ([0, 1], (0, 1)),
        ([-0.2, 1], (-1, 1)),
        ([1, 5], (0, 5)),
        ([7, 0, 10], (0, 10)),
        ([7, 1], (1, 7)),
        ([7.0000005, 0.9999999], (1, 7)),
        ([55, 3], (3, 55)),
        ([-3, 200], None),
        ([3] * 18 + [55], (3, 55)),
        ([3] * 19 + [55], (0, 5)),
        ([3] * 18 + [55, 100], (3, 100)),
        ([3] * 198 + [55, 56], (0, 5)),
        ([3] * 197 + [55, 56, 57], (3, 57)),
    ],
)
def test_the_narrowest_scale_that_fits_the_labels_is_taken(numbers, scale):
    assert infer_scale(numbers) == scale


@pytest.mark.parametrize(
    ("labels", "scale", "own_scale"),
    [
        ([0, 5], (0, 5), False),
        ([1, 5, 2.5], (0, 5), False),
        ([0.2, 4.8], (0, 5), False),
        ([0.2, 0.7], (0, 1), False),
        ([-0.2, 0.7], (-1, 1), False),
        ([0, 10], (0, 10), False),
        ([1, 7, 3], (1, 7), True),
        ([1.25, 6.5], (1, 7), True),
        ([0, 4, 1], (0, 4), True),
        ([0, 3] * 100 + [55], (0, 3), True),
        ([-3, 200], None, False),
    ],
)
def test_labels_that_end_where_no_known_scale_does_have_their_own(tmp_path, labels, scale, own_scale):
    data = pairs(tmp_path, labels, drop_bad_rows=True)
    assert (data.scale, data.own_scale) == (scale, own_scale)
    assert len([line for line in examine(data).warnings if "no usual scale" in line]) == own_scale
    ranged = pairs(tmp_path, labels, label_range=(-500, 500))
    assert (ranged.scale, ranged.own_scale) == ((-500, 500), False)


def test_ratings_from_1_to_7_are_trained_on_as_such(tmp_path):
    data = pairs(tmp_path, range(1, 8))
    assert PAIR_LOSSES.targets(data, "mse").columns["label"] == pytest.approx([step / 6 for step in range(7)])
    assert PAIR_LOSSES.targets(data, "contrastive").summary.endswith("3 of 7 pairs positive, labels above 4")
    assert examine(data).warnings == [
        "no usual scale ends where these labels do, so 1 to 7 is taken: if labels could go further, give "
        "`label_range` LOW HIGH"
    ]
    assert PAIR_LOSSES.targets(pairs(tmp_path, range(5)), "mse").columns["label"] == [0, 0.25, 0.5, 0.75, 1]


def test_names_do_not_count_among_scores_nor_scores_among_names(tmp_path):
    assert refusal(DataError, tmp_path, [0.5, 4.5, True, "not_duplicate"]) == (
        f"{tmp_path}/pairs.jsonl: 2 of 4 rows cannot be used.\n"
        "  row 3, column 'score': label True stands among numbers. Fix: write all labels in one way.\n"
        "  row 4, column 'score': label 'not_duplicate' stands among numbers. Fix: write all labels in one way.\n"
        "Correct these rows, or leave them out with `drop_bad_rows`."
    )
    assert "row 4, column 'score': label 0.5 stands among true, false or named classes" in refusal(
        DataError, tmp_path, ["true", False, True, 0.5]
    )
    assert "row 3, column 'score': label 'True' stands among numbers" in refusal(DataError, tmp_path, [0, 1, "True", 1])
    assert "row 1, column 'score': label 'not_duplicate' stands among numbers" in refusal(
        DataError, tmp_path, ["not_duplicate", "0", "1"]
    )


@pytest.mark.parametrize("name", ["label", "duplicate", "is_duplicate", "score"])
@pytest.mark.parametrize(
    "labels",
    [["yes", "no"], ["Y", "N"], ["True", "FALSE"], [True, False], ["duplicate", "not_duplicate"], [1, 0], ["1.0", "0"]],
)
def test_yes_and_no_are_read_alike_under_every_name(tmp_path, name, labels):
    data = pairs(tmp_path, labels, ("question1", "question2", name))
    assert (data.labels, data.kind, data.scale, data.label_column) == ([1.0, 0.0], "binary", (0, 1), name)


def test_a_share_is_never_rounded_up_to_all():
    assert [percent_text(99, 100), percent_text(5748, 5749), percent_text(7, 7)] == ["99.0 %", "99.98 %", "100.0 %"]


def test_a_stray_label_is_refused_with_the_scale_of_the_others(tmp_path):
    assert refusal(DataError, tmp_path, [0, 5, 3.5] * 333 + [55]) == (
        f"{tmp_path}/pairs.jsonl: 1 of 1000 rows cannot be used.\n"
        "  row 1000, column 'score': label 55 is outside the scale 0-5 that the other 99.9 % use. Fix: correct the "
        "label, or give the true scale with `label_range` LOW HIGH.\n"
        "Correct these rows, or leave them out with `drop_bad_rows`."
    )
    assert pairs(tmp_path, [0, 5, 3.5] * 333 + [55], label_range=(0, 100)).scale == (0.0, 100.0)


def test_a_given_range_is_enforced(tmp_path):
    assert refusal(DataError, tmp_path, [0, 1, 2], label_range=(0, 1)) == (
        f"{tmp_path}/pairs.jsonl: 1 of 3 rows cannot be used.\n"
        "  row 3, column 'score': label 2 is outside the range 0-1 given with `label_range`. Fix: correct the label.\n"
        "Correct these rows, or leave them out with `drop_bad_rows`."
    )


def test_kinds_and_scales(tmp_path):
    assert [
        (data.kind, data.scale) for data in (pairs(tmp_path, labels) for labels in ([0, 1], [0, 0.5], [-4, 900]))
    ] == [
        ("binary", (0, 1)),
        ("scored", (0, 1)),
        ("scored", None),
    ]
    assert pairs(tmp_path, ["true", "FALSE"]).labels == [1.0, 0.0]
    assert pairs(tmp_path, [True, False]).kind == "binary"


def test_classes_of_inference_are_ordered_by_closeness(tmp_path):
    data = pairs(tmp_path, ["Entailment", "neutral", "CONTRADICTION"], NLI)
    assert (data.labels, data.kind, data.scale) == ([2.0, 1.0, 0.0], "nli", (0.0, 2.0))
    assert pairs(tmp_path, ["entailment", "not_entailment"], SCORED).labels == [2.0, 0.0]


def test_rows_without_a_gold_label_are_left_out_and_counted(tmp_path):
    data = pairs(tmp_path, ["entailment", "-", "neutral", "", "-1", -1], NLI)
    assert (data.labels, data.dropped_unlabelled, data.dropped) == ([2.0, 1.0], 4, 0)


def test_a_source_with_hidden_labels_only_is_refused(tmp_path):
    assert refusal(DataError, tmp_path, [-1, -1], NLI, label_order="entailment,neutral,contradiction") == (
        f"{tmp_path}/pairs.jsonl: no row is left of 2; 0 cannot be used and 2 have no label (-, -1 or empty, as in "
        "test parts with hidden labels). Give a file with labels."
    )


@pytest.mark.parametrize(
    ("labels", "names", "integers"),
    [
        ([0, 1, 2], NLI, "0, 1, 2"),
        (["0", "1"], NLI, "0, 1"),
        ([0, 1, 2, -1], NLI, "0, 1, 2"),
        ([0.0, 2.0, 1.0] * 40 + [55], NLI, None),
        ([2, 1, 0], ("sentence1", "sentence2", "label"), "0, 1, 2"),
        ([2, 1, 0], GOLD, "0, 1, 2"),
        ([2, 0, -1], GOLD, "0, 2"),
        ([2, 1, 1], ("sentence1", "sentence2", "label"), "1, 2"),
    ],
)
def test_integers_that_may_be_classes_are_never_guessed(tmp_path, labels, names, integers):
    column_names = ",".join(names)
    assert refusal(DataError, tmp_path, labels, names, drop_bad_rows=True, columns=column_names) == (
        f"{tmp_path}/pairs.jsonl: column {names[2]!r} holds the integers {integers or '0, 1, 2'}, which may be classes "
        "of natural language inference, and data sets disagree about their order (SNLI and SICK on the hub code 0 as "
        "entailment). Name the classes of 0, 1, 2 in order: `label_order` entailment,neutral,contradiction. "
        "If they are similarity scores, give their scale: "
        "`label_range` 0 2."
    )


def test_classes_from_1_on_beside_a_premise_are_never_guessed(tmp_path):
    assert refusal(DataError, tmp_path, [1, 3, 2], NLI) == (
        f"{tmp_path}/pairs.jsonl: column 'label' holds the integers 1, 2, 3, which may be classes of natural language "
        "inference, and data sets disagree about their order (SNLI and SICK on the hub code 0 as entailment). Write "
        "the classes in words, or number them from 0 and name them in order with `label_order`. If they are "
        "similarity scores, give their scale: `label_range` 1 3."
    )
    assert pairs(tmp_path, [1, 3, 2], NLI, label_range=(1, 3)).labels == [1, 3, 2]
    scores = ("premise", "hypothesis", "score")
    assert (
        "holds the integers 1, 2, 3, which may be classes of natural language inference, and data sets disagree about "
        "their order (SNLI and SICK on the hub code 0 as entailment). Write the classes in words. If they are "
        "similarity scores, give their scale: `label_range` 1 3."
    ) in refusal(DataError, tmp_path, ["1", "3", "2"] * 20, scores)
    assert pairs(tmp_path, [1, 3, 2, 4.5], scores).scale == (0, 5)


def test_what_cannot_be_classes_or_has_the_name_of_a_score_is_read(tmp_path):
    assert pairs(tmp_path, [0, 1], GOLD, columns="a,b,gold").kind == "binary"
    assert pairs(tmp_path, [0, 1, 2, 5], GOLD, columns="a,b,gold").kind == "scored"
    assert pairs(tmp_path, [0, 1, 2]).scale == (0, 2)
    assert pairs(tmp_path, [0, 1, 2], ("premise", "hypothesis", "score")).labels == [0, 1, 2]


def test_label_order_and_label_range_settle_it(tmp_path):
    coded = pairs(tmp_path, [0, "1", 2.0, "2.0"], NLI, label_order="entailment, neutral, contradiction")
    assert (coded.labels, coded.kind) == ([2.0, 1.0, 0.0, 0.0], "nli")
    scored = pairs(tmp_path, [0, 1, 2], NLI, label_range=(0, 2))
    assert (scored.labels, scored.kind, scored.scale) == ([0.0, 1.0, 2.0], "scored", (0.0, 2.0))
    assert pairs(tmp_path, [0, 1, 3.5], NLI).kind == "scored"


def test_null_among_classes_is_no_label(tmp_path):
    data = pairs(tmp_path, ["neutral", None, "", "entailment"], NLI)
    assert (data.labels, data.dropped_unlabelled) == ([1.0, 2.0], 2)


def test_scores_that_select_need_no_order_of_classes(tmp_path):
    options = Reading(label_order="entailment,neutral,contradiction")
    (tmp_path / "dev.tsv").write_text("sentence1\tsentence2\tscore\na\tb\t0\nc\td\t1\n")
    (tmp_path / "coded.tsv").write_text("premise\thypothesis\tlabel\na\tb\t0\nc\td\t2\n")
    assert options.for_evaluation(str(tmp_path / "dev.tsv")) == Reading()
    assert options.for_evaluation(str(tmp_path / "coded.tsv")) == options
    with pytest.raises(ConfigError, match="`label_order` is for classes, and column 'score' holds scores by its name"):
        read_pairs(tmp_path / "dev.tsv", label_order=options.label_order)


def test_an_integer_that_label_order_does_not_name_is_refused(tmp_path):
    assert refusal(DataError, tmp_path, [0, 1, 3], NLI, label_order="entailment,not_entailment") == (
        f"{tmp_path}/pairs.jsonl: 1 of 3 rows cannot be used.\n"
        "  row 3, column 'label': label 3 is not one of the integers 0, 1 that `label_order` names. Fix: correct the "
        "label, or write - if there is none.\n"
        "Correct these rows, or leave them out with `drop_bad_rows`."
    )


@pytest.mark.parametrize("order", ["entailment", "entailment,entailment", "yes,no", ""])
def test_a_malformed_label_order_is_refused(tmp_path, order):
    assert refusal(ConfigError, tmp_path, [0, 1], NLI, label_order=order) == (
        "`label_order` takes two or three different names out of contradiction, not_entailment, neutral, entailment; "
        f"received {order!r}. Example: `label_order` entailment,neutral,contradiction"
    )


def test_options_that_contradict_are_refused(tmp_path):
    order = "entailment,neutral,contradiction"
    assert refusal(ConfigError, tmp_path, ["neutral", "entailment"], NLI, label_order=order) == (
        f"{tmp_path}/pairs.jsonl: `label_order` is for numeric labels, and column 'label' names its classes. "
        "Leave it out."
    )
    assert refusal(ConfigError, tmp_path, [0, 1], SCORED, label_order=order) == (
        f"{tmp_path}/pairs.jsonl: `label_order` is for classes, and column 'score' holds scores by its name. Leave "
        "it out, or name the column label. Where other files of the command need it, write their classes in words "
        "instead."
    )
    assert refusal(ConfigError, tmp_path, [0, 1], NLI, label_order=order, label_range=(0, 1)) == (
        "`label_order` is for classes and `label_range` for scores; give one of them."
    )
    assert refusal(ConfigError, tmp_path, [0, 1], label_range=(5, 0)) == (
        "`label_range` takes a lower and a higher number; received 5 0. Example: 0 5"
    )


def test_one_label_for_all_rows_is_refused(tmp_path):
    assert refusal(DataError, tmp_path, [1, 1, 1]) == (
        f"{tmp_path}/pairs.jsonl: every label is 1.0: nothing to rank. The labels must differ; "
        "check that the label column is the right one."
    )


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            ["gut", "schlecht", "gut"],
            "'gut' (2), 'schlecht' (1). Replace them by 1 for a pair that belongs together, and",
        ),
        (["low", "medium", "high"], "'low' (1), 'medium' (1), 'high' (1). Replace them by numbers: the higher, the cl"),
        (["3/5", "4/5", "-"], "'3/5' (1), '4/5' (1). Write plain numbers, without a unit"),
        (
            [f"text {number}" for number in range(20)],
            "'text 4' (1) and 15 others. If it is not the column of labels, name",
        ),
    ],
)
def test_words_that_are_no_labels_are_said_once_with_what_to_write(labels, message):
    rows = [{"sentence1": f"a {number}", "sentence2": "b", "score": label} for number, label in enumerate(labels)]
    for drop in (False, True):
        with pytest.raises(DataError) as caught:
            read_pairs(rows, drop_bad_rows=drop)
        assert "no label is known: column 'score' holds " in str(caught.value) and message in str(caught.value)
        assert "drop_bad_rows" not in str(caught.value)


@pytest.mark.parametrize("top", [1.0000001192092896, 1.0000005])
def test_a_cosine_of_32_bits_that_is_rounded_above_one_is_one(tmp_path, top):
    data = pairs(tmp_path, [0.25, top, 0.5])
    assert (data.scale, data.labels) == ((0, 1), [0.25, 1, 0.5])
    assert pairs(tmp_path, [-1.0000001, top]).labels == [-1, 1]
    assert pairs(tmp_path, [0, 5.000001, 3], label_range=(0, 5)).labels == [0, 5, 3]


def test_a_label_that_is_just_outside_is_shown_with_all_its_digits(tmp_path):
    assert "label 1.000002 is outside the scale 0-1" in refusal(DataError, tmp_path, [0.5] * 20 + [1.000002])


@pytest.mark.parametrize(
    "words",
    [["positive", "neutral", "negative"], ["strongly disagree", "disagree", "neutral", "agree", "strongly agree"]],
)
def test_neutral_among_words_of_another_scale_is_no_class_of_inference(tmp_path, words):
    message = refusal(DataError, tmp_path, words * 3)
    assert f"no label is known: column 'score' holds '{words[0]}' (3)" in message
    assert "Replace them by numbers" in message and "contradiction" not in message


def test_neutral_beside_one_other_word_is_still_a_class(tmp_path):
    assert "label 'contradict' is not one of contradiction" in refusal(DataError, tmp_path, ["neutral", "contradict"])


@pytest.mark.parametrize(
    ("labels", "numbers"),
    [
        (["٠", "٣", "٥"], [0, 3, 5]),
        (["٠٫٥", "۴٫۲۵", "५"], [0.5, 4.25, 5]),
        (["−0.5", "0.25", "－１．０"], [-0.5, 0.25, -1]),
        (["５０％", "1٪"], [0.5, 0.01]),
    ],
)
def test_numbers_in_the_digits_of_other_scripts_are_numbers(tmp_path, labels, numbers):
    assert pairs(tmp_path, labels).labels == numbers


def test_a_label_within_an_object_is_told_to_get_a_column(tmp_path):
    message = refusal(DataError, tmp_path, [{"label": 3.5, "binary-label": 1}] * 4)
    assert "is an object, which is not read" in message
    assert "Fix: write its label into a column of its own; in pandas, json_normalize does so." in message
    assert message.endswith("Correct these rows."), "without them, no row would be left"
