"""How labels of each kind are read for each loss: against plain loops, and what is refused."""

import pytest

from samesense.data.pairs.targets import midpoint
from samesense.errors import DataError
from samesense.training.losses.registry import PAIR_LOSSES
from tests.data.made import BINARY, DATA, NLI, SCORED, TRIPLE, pair_data

targets = PAIR_LOSSES.targets


@pytest.mark.parametrize("data", DATA.values(), ids=DATA)
def test_cosent_takes_every_label_as_it_is(data):
    made = targets(data, "cosent")
    assert made.columns == {"sentence1": data.sentences1, "sentence2": data.sentences2, "label": data.labels}


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
        ("triple", [1.0, 0.0, 1.0], (0, 1), [1.0, 0.0, 1.0], "mse: labels 0 and 1 as they are"),
    ],
)
def test_mse_reads_every_label_from_0_to_1(kind, labels, scale, expected, summary):
    data = pair_data([("a", "b", label) for label in labels], kind, scale)
    made = targets(data, "mse")
    assert made.columns["label"] == pytest.approx(expected)
    assert made.summary == summary
    same = targets(data, "cross-entropy", "cross")
    assert same.columns == made.columns
    assert same.summary == summary.replace("mse", "cross-entropy")


def test_contrastive_cuts_scores_in_the_middle():
    made = targets(SCORED, "contrastive")
    assert made.columns["label"] == [1.0 if label > 2.5 else 0.0 for label in SCORED.labels]
    count = sum(label > 2.5 for label in SCORED.labels)
    assert made.summary == f"contrastive: {count} of 200 pairs positive, labels above 2.5"
    higher = targets(SCORED, "contrastive", positive_above=4)
    assert higher.columns["label"] == [float(label == 5.0) for label in SCORED.labels]
    assert targets(BINARY, "contrastive").columns["label"] == BINARY.labels


def test_the_middle_of_a_scale():
    rows = [("a", "b", label) for label in (1.0, 2.0, 4.0)]
    assert midpoint(pair_data(rows, "scored", (0, 5))) == 3.0  # no label below 1: a scale of 1 to 5, as SICK's
    assert midpoint(pair_data([*rows, ("c", "d", 0.5)], "scored", (0, 5))) == 2.5
    assert midpoint(pair_data(rows, "scored", (0, 10))) == 5.0
    assert midpoint(pair_data(rows, "scored", (1, 4))) == 2.5


@pytest.mark.parametrize(
    ("data", "classes", "names"),
    [(NLI, 3, "contradiction, neutral, entailment"), (BINARY, 2, "0, 1"), (TRIPLE, 2, "0, 1")],
)
def test_softmax_numbers_the_classes_from_0(data, classes, names):
    made = targets(data, "softmax")
    assert made.columns["label"] == [int(label) for label in data.labels]
    assert all(type(label) is int for label in made.columns["label"])
    assert made.settings == {"classes": classes}
    assert made.summary == f"softmax: {classes} classes ({names})"


def test_softmax_has_no_class_without_examples():
    made = targets(pair_data([("a", "b", 0.0), ("a", "c", 2.0), ("a", "d", 0.0)], "nli"), "softmax")
    assert (made.columns["label"], made.settings) == ([0, 1, 0], {"classes": 2})
    assert made.summary == "softmax: 2 classes (contradiction, entailment)"


@pytest.mark.parametrize(("data", "above"), [(SCORED, 2.5), (BINARY, 0), (NLI, 1), (TRIPLE, 0)])
def test_info_nce_takes_the_positive_pairs(data, above):
    made = targets(data, "info-nce", hard_negatives=False)
    rows = [row for row, label in enumerate(data.labels) if label > above]
    assert made.columns == {
        "anchor": [data.sentences1[row] for row in rows], "positive": [data.sentences2[row] for row in rows]
    }  # fmt: skip
    assert made.summary.startswith(f"info-nce: {len(rows)} ")
    assert made.summary.endswith(f"; {200 - len(rows)} of 200 pairs not used")


def test_what_fits_is_made_and_what_does_not_is_refused():
    for kind, data in DATA.items():
        for spec in PAIR_LOSSES.specs:
            if kind in spec.kinds:
                assert len(targets(data, spec.name, spec.encoder)) > 0
            else:
                fitting = PAIR_LOSSES.fitting(kind, spec.encoder)
                with pytest.raises(DataError, match=rf"^{spec.name} takes .* These losses fit: {fitting}\.$"):
                    targets(data, spec.name, spec.encoder)
    assert PAIR_LOSSES.fitting("binary", "cross") == "cosent and cross-entropy"


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
