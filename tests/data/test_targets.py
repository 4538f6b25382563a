"""How labels of each kind are read for each loss: against plain loops, and what is refused."""

import pytest

from samesense.data.pairs.targets import scale_midpoint
from samesense.errors import ConfigError, DataError
from samesense.losses.registry import PAIR_LOSSES
from samesense.recipes.cosent.settings import CosentSettings
from tests.data.made import BINARY, DATA, NLI, SCORED, TRIPLET, pair_data

targets = PAIR_LOSSES.targets

BINS = {"softmax": {"bins": 5}}
"""What a loss needs to be told of scores."""


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_cosent_takes_every_label_as_it_is(data):
    prepared = targets(data, "cosent")
    assert prepared.columns == {"sentence1": data.sentences1, "sentence2": data.sentences2, "label": data.labels}


def test_groups_are_the_pairs_with_the_same_first_text():
    rows = [("b", "x", 1.0), ("a", "x", 0.0), ("b", "y", 0.0), ("c", "x", 1.0), ("a", "z", 1.0), ("b", "z", 1.0)]
    prepared = targets(pair_data(rows, "binary"), "cosent", groups="first")
    assert prepared.groups.tolist() == [0, 1, 0, 2, 1, 0]
    assert prepared.columns["label"] == [1, 0, 0, 1, 1, 1]
    assert prepared.trainer_columns()["label"] == [[1, 0], [0, 1], [0, 0], [1, 2], [1, 1], [1, 0]]
    assert prepared.settings == {"grouped": True}
    assert prepared.summary == (
        "cosent: labels as they are, their order counts; 3 groups of one first text with 1 to 3 pairs, 2 of them with "
        "two labels"
    )
    assert targets(pair_data(rows, "binary"), "cosent").groups is None


def test_data_without_groups_are_refused():
    rows = [(f"query {row}", "x", float(row % 2)) for row in range(30)] + [("query 0", "y", 1.0)]
    with pytest.raises(DataError) as error:
        targets(pair_data(rows, "binary"), "cosent", groups="first")
    assert str(error.value) == (
        "made.tsv: only pairs with the same first text are compared, and 2 of 31 pairs have one with another label. "
        "Give several labelled candidates for each query, the query as first text of each pair. Or leave out groups."
    )


@pytest.mark.parametrize(
    ("kind", "labels", "scale", "expected", "summary"),
    [
        ("scored", [0.0, 2.5, 5.0], (0, 5), [0.0, 0.5, 1.0], "mse: labels divided by 5"),
        ("scored", [1.0, 3.0, 5.0], (0, 5), [0.2, 0.6, 1.0], "mse: labels divided by 5"),
        ("scored", [1.0, 3.0, 5.0], (1, 5), [0.0, 0.5, 1.0], "mse: labels from 1 to 5 on 0..1"),
        ("scored", [-1.0, 0.0, 1.0], (-1, 1), [0.0, 0.5, 1.0], "mse: labels from -1 to 1 on 0..1"),
        ("scored", [0.0, 0.2, 1.0], (0, 1), [0.0, 0.2, 1.0], "mse: labels 0 to 1 as they are"),
        ("nli", [0.0, 1.0, 2.0], (0, 2), [0.0, 0.5, 1.0], "mse: contradiction 0, neutral 0.5, entailment 1"),
        ("binary", [0.0, 1.0, 1.0], (0, 1), [0.0, 1.0, 1.0], "mse: labels 0 and 1 as they are"),
        ("triplet", [1.0, 0.0, 1.0], (0, 1), [1.0, 0.0, 1.0], "mse: labels 0 and 1 as they are"),
    ],
)
def test_mse_reads_every_label_from_0_to_1(kind, labels, scale, expected, summary):
    data = pair_data([("a", "b", label) for label in labels], kind, scale)
    prepared = targets(data, "mse")
    assert prepared.columns["label"] == pytest.approx(expected)
    assert prepared.summary == summary
    same = targets(data, "cross-entropy", "cross")
    assert same.columns == prepared.columns
    assert same.summary == summary.replace("mse", "cross-entropy")


def test_contrastive_cuts_scores_in_the_middle():
    prepared = targets(SCORED, "contrastive")
    assert prepared.columns["label"] == [1.0 if label > 2.5 else 0.0 for label in SCORED.labels]
    count = sum(label > 2.5 for label in SCORED.labels)
    assert prepared.summary == f"contrastive: {count} of 200 pairs positive, labels above 2.5"
    higher = targets(SCORED, "contrastive", positive_above=4)
    assert higher.columns["label"] == [float(label == 5.0) for label in SCORED.labels]
    assert targets(BINARY, "contrastive").columns["label"] == BINARY.labels


def test_the_middle_of_a_scale():
    rows = [("a", "b", label) for label in (1.0, 2.0, 4.0)]
    assert scale_midpoint(pair_data(rows, "scored", (0, 5))) == 3.0  # no label below 1: a scale of 1 to 5, as SICK's
    assert scale_midpoint(pair_data([*rows, ("c", "d", 0.5)], "scored", (0, 5))) == 2.5
    assert scale_midpoint(pair_data(rows, "scored", (0, 10))) == 5.0
    assert scale_midpoint(pair_data(rows, "scored", (1, 4))) == 2.5


@pytest.mark.parametrize(
    ("data", "classes", "names"),
    [(NLI, 3, "contradiction, neutral, entailment"), (BINARY, 2, "0, 1"), (TRIPLET, 2, "0, 1")],
)
def test_softmax_numbers_the_classes_from_0(data, classes, names):
    prepared = targets(data, "softmax")
    assert prepared.columns["label"] == [int(label) for label in data.labels]
    assert all(type(label) is int for label in prepared.columns["label"])
    assert prepared.settings == {"classes": classes}
    assert prepared.summary == f"softmax: {classes} classes ({names})"


def test_softmax_has_no_class_without_examples():
    prepared = targets(pair_data([("a", "b", 0.0), ("a", "c", 2.0), ("a", "d", 0.0)], "nli"), "softmax")
    assert (prepared.columns["label"], prepared.settings) == ([0, 1, 0], {"classes": 2})
    assert prepared.summary == "softmax: 2 classes (contradiction, entailment)"


def scores(labels, scale=(0, 5)):
    return pair_data([("a", "b", label) for label in labels], "scored", scale)


def test_softmax_cuts_scores_into_bins_of_equal_width():
    prepared = targets(scores([0.0, 0.9, 1.0, 2.5, 3.99, 4.0, 5.0]), "softmax", bins=5)
    assert prepared.columns["label"] == [0, 0, 1, 2, 3, 4, 4]  # each bin has its lower edge, the last one both
    assert all(type(label) is int for label in prepared.columns["label"])
    assert prepared.settings == {"classes": 5}
    assert prepared.summary == (
        "softmax: 5 classes, scores in bins of equal width (pairs of 0 to 1: 2, 1 to 2: 1, 2 to 3: 1, 3 to 4: 1, "
        "4 to 5: 2)"
    )
    fifths = targets(scores([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], (0, 1)), "softmax", bins=5)
    assert fifths.columns["label"] == [0, 1, 2, 3, 4, 4]  # linspace alone puts 0.6 one bin too low


def test_softmax_cuts_scores_by_edges_and_leaves_out_empty_bins():
    prepared = targets(scores([0.0, 1.5, 4.0, 5.0]), "softmax", bins=(0.0, 1.5, 2.0, 3.0, 5.0))
    assert (prepared.columns["label"], prepared.settings) == ([0, 1, 2, 2], {"classes": 3})
    assert prepared.summary.endswith(
        "by their edges (pairs of 0 to 1.5: 1, 1.5 to 2: 1, 3 to 5: 2); empty and left out: 2 to 3"
    )


def test_whole_scores_are_classes_by_themselves():
    prepared = targets(scores([0.0, 3.0, 5.0, 3.0]), "softmax")
    assert (prepared.columns["label"], prepared.settings) == ([0, 1, 2, 1], {"classes": 3})
    assert prepared.summary == "softmax: 3 classes, each whole score its own (pairs of 0: 1, 3: 2, 5: 1)"
    ratings = targets(scores(map(float, range(11)), (0, 10)), "softmax")
    assert ratings.settings == {"classes": 11}
    with pytest.raises(DataError, match="graded: 12 different scores from 0 to 11"):
        targets(scores(map(float, range(12)), (0, 100)), "softmax")


def test_scores_that_are_no_classes_are_refused_with_the_option_that_settles_it():
    for labels, bins, scale, words in (
        ([0.0, 2.5, 5.0], None, (0, 5), r"graded: 3 different scores from 0 to 5. Give `bins`, .* as in: bins 5; or"),
        (
            [0.0, 2.5, 700.0],
            5,
            None,
            "the scale of the labels must be known.* Give the edges of the bins, or",
        ),
        ([0.0, 2.5, 5.0], (0.0, 1.0, 2.0), (0, 5), "bins take scores from 0 to 2; 2 of 3 lie outside, the first 2.5"),
        ([0.1, 0.2, 0.3], 5, (0, 5), "all 3 pairs are of one: 0 to 1. Give more bins, or other edges"),
    ):
        with pytest.raises(DataError, match=words):
            targets(scores(labels, scale), "softmax", bins=bins)
    assert targets(BINARY, "softmax", bins=5).summary.endswith("2 classes (0, 1); bins are for scores, and not used")


@pytest.mark.parametrize("bins", [1, 0, -3, 2.5, True, [], [1, 2], [0, 2, 2], [3, 2, 1], "x", {}, [0, float("nan"), 2]])
def test_bins_that_are_none_are_refused(bins):
    with pytest.raises(ConfigError, match=r"`bins` takes the number of bins, 2 or more, or three finite, rising edges"):
        CosentSettings(loss="softmax", bins=bins)


@pytest.mark.parametrize(
    ("text", "bins"), [(5, 5), ("5", 5), (["5"], 5), ("0,2.5,5", (0, 2.5, 5)), (["0", "1", "5"], (0, 1, 5))]
)
def test_bins_are_a_number_or_edges_in_a_file_and_in_words(text, bins):
    assert CosentSettings(loss="softmax", bins=text).bins == bins


@pytest.mark.parametrize(("data", "above"), [(SCORED, 2.5), (BINARY, 0), (NLI, 1), (TRIPLET, 0)])
def test_info_nce_takes_the_positive_pairs(data, above):
    prepared = targets(data, "info-nce", hard_negatives=False)
    rows = [row for row, label in enumerate(data.labels) if label > above]
    assert prepared.columns == {
        "anchor": [data.sentences1[row] for row in rows],
        "positive": [data.sentences2[row] for row in rows],
    }
    assert prepared.summary.startswith(f"info-nce: {len(rows)} ")
    assert prepared.summary.endswith(f"; {200 - len(rows)} of 200 pairs not used")


def test_what_fits_is_made_and_what_does_not_is_refused():
    for kind, data in DATA.items():
        for spec in PAIR_LOSSES.specs:
            if kind in spec.kinds:
                assert len(targets(data, spec.name, spec.encoder, **BINS.get(spec.name, {}))) > 0
            else:
                fitting = PAIR_LOSSES.fitting(kind, spec.encoder)
                with pytest.raises(DataError, match=rf"^{spec.name} takes .* These losses fit: {fitting}\.$"):
                    targets(data, spec.name, spec.encoder)
    assert PAIR_LOSSES.fitting("binary", "cross") == "cosent, cross-entropy, lambda and margin-mse"


def test_refusals_name_the_rule_the_data_and_the_fix():
    with pytest.raises(DataError) as error:
        targets(NLI, "contrastive")
    assert "contrastive" not in PAIR_LOSSES.fitting("nli")
    assert str(error.value) == (
        "contrastive takes labels 0 and 1, or scores, which it cuts in two; made.tsv has nli labels. "
        f"These losses fit: {PAIR_LOSSES.fitting('nli')}."
    )
    unknown = pair_data([("a", "b", 3.0), ("c", "d", 700.0)], "scored", None)
    with pytest.raises(DataError) as error:
        targets(unknown, "mse")
    assert str(error.value).startswith("made.tsv: the scale of the labels must be known; they run from 3 to 700")
    assert str(error.value).endswith("Give it as label_range LOW HIGH.")
    assert targets(unknown, "contrastive", positive_above=100).columns["label"] == [0.0, 1.0]
    with pytest.raises(DataError) as error:
        targets(SCORED, "contrastive", positive_above=5)
    assert str(error.value) == (
        "made.tsv: 0 of 200 pairs are positive (labels above 5), so that the loss has nothing to tell apart. "
        "Give another positive_above, or take cosent."
    )
    neutral = pair_data([("a", "b", 0.0), ("a", "c", 1.0)], "nli")
    with pytest.raises(DataError, match=r"0 of 2 pairs are positive .* Take cosent\.$"):
        targets(neutral, "info-nce")
    with pytest.raises(DataError) as error:
        targets(pair_data([("a", "b", 0.0), ("c", "d", 1.0)], "binary"), "triplet")
    assert str(error.value) == (
        "made.tsv: a triplet needs a sentence with a positive and a negative partner, and none of 2 pairs has one. "
        "Take cosent, which compares pairs."
    )
