"""Data that do not fit a loss are refused before the first step; the message names losses that fit."""

import pytest
import torch
from datasets import Dataset

from samesense.errors import DataError
from samesense.losses.check import check_dataset, dataset_shape
from samesense.losses.contrastive import Contrastive
from samesense.losses.cosent import CoSENT
from samesense.losses.info_nce import InfoNCE
from samesense.losses.mse import MSE
from samesense.losses.multi_positive import MultiPositive
from samesense.losses.rank_cse import RankCSE
from samesense.losses.softmax import Softmax
from samesense.losses.sup_con import SupCon
from samesense.losses.triplet import Triplet
from samesense.training.fit import fit
from samesense.training.settings import TrainingSettings

TEXTS = ["a dog runs", "the cat sleeps", "no rain"]


def dataset(columns, labels=None, name="label"):
    texts = {f"text{c}": TEXTS for c in range(columns)}
    return Dataset.from_dict(texts if labels is None else {**texts, name: labels})


def message(loss, data):
    with pytest.raises(DataError) as error:
        check_dataset(loss, data)
    return str(error.value)


def test_scores_do_not_fit_the_contrastive_loss(tiny):
    error = message(Contrastive(tiny), dataset(2, [0.0, 2.5, 5.0], "score"))
    assert error.startswith(
        "Contrastive takes two text columns, and labels 0 and 1; received 2 text columns (text0, text1) and as score "
        "3 different numbers (0, 2.5, 5). These fit: CoSENT"
    )


def test_labels_beyond_the_cosine_do_not_fit_mse(tiny):
    assert "a number from -1 to 1" in message(MSE(tiny), dataset(2, [0, 3, 5]))


def test_one_label_compares_nothing(tiny):
    error = message(CoSENT(tiny), dataset(2, [1, 1, 1]))
    assert "not all equal; received" in error
    assert error.endswith("1 different numbers (1). These fit: Contrastive, MSE, Softmax.")


@pytest.mark.parametrize(
    ("columns", "labels", "fitting"),
    [
        (1, None, "InfoNCE"),
        (2, None, "InfoNCE, MultiPositive"),
        (3, None, "Triplet, InfoNCE, MultiPositive"),
        (1, [0, 1, 2], "SupCon, BatchTriplet, RankCSE"),
    ],
)
def test_what_would_fit_is_named(tiny, columns, labels, fitting):
    assert message(CoSENT(tiny), dataset(columns, labels)).endswith(f"These fit: {fitting}.")


def test_nothing_fits_text_labels(tiny):
    error = message(CoSENT(tiny), dataset(2, ["yes", "no", "yes"]))
    assert error.endswith("and as label 'yes' in row 1. No loss fits these data.")


def test_classes_must_be_within_the_head(tiny):
    check_dataset(Softmax(tiny, classes=3, dim=32), dataset(2, [0, 1, 2]))
    with pytest.raises(DataError, match=r"Softmax has 2 classes, numbered from 0.*classes=3\."):
        check_dataset(Softmax(tiny, classes=2, dim=32), dataset(2, [0, 1, 2]))


@pytest.mark.parametrize(
    ("make", "columns", "labels"),
    [
        (CoSENT, 2, [0, 1, 5]),
        (MSE, 2, [0.5, 0.5, 1]),
        (Triplet, 3, None),
        (InfoNCE, 1, None),
        (InfoNCE, 5, None),
        (lambda model: InfoNCE(model, some_negatives=True), 3, [1, 0, 1]),
        (SupCon, 1, [0, 1, 1]),
        (lambda model: MultiPositive(model, positives=2), 4, None),
        (lambda model: RankCSE(model, teachers=[torch.eye(3).__getitem__]), 1, [0, 1, 2]),
        (lambda model: RankCSE(model, gamma=0), 1, None),
    ],
)
def test_what_fits_passes(tiny, make, columns, labels):
    check_dataset(make(tiny), dataset(columns, labels))


@pytest.mark.parametrize("labels", [None, [2, 0, 1]])
def test_some_negatives_need_labels_that_name_them(tiny, labels):
    error = message(InfoNCE(tiny, some_negatives=True), dataset(3, labels))
    assert error.startswith("InfoNCE takes three text columns: anchor, positive, hard negative, and labels 0 and 1;")


def test_missing_labels_are_named_by_row(tiny):
    assert "None in row 2" in message(CoSENT(tiny), dataset(2, [0.5, None, 1.0]))


def test_a_module_of_another_library_is_not_checked(tiny):
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    check_dataset(CosineSimilarityLoss(tiny), dataset(7))


def test_fit_asks_before_anything_is_written(tiny, tmp_path):
    with pytest.raises(DataError, match="Triplet takes three text columns"):
        fit(tiny, dataset(2, [0, 1, 2]), Triplet(tiny), TrainingSettings(), tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_shape_counts_labels_that_are_many():
    shape = dataset_shape(dataset(2, [1, 2, 3]))
    assert (shape.columns, shape.kinds) == (2, {"order", "class", "row"})
