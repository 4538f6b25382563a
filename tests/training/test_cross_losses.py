"""The losses of logits: values by hand, any mini-batch size, and refused data."""

import math

import pytest
import torch
from sentence_transformers.cross_encoder.data_collator import CrossEncoderDataCollator
from sentence_transformers.cross_encoder.losses import BinaryCrossEntropyLoss

from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.assembly.cross import as_logits
from samesense.losses.cosent import CrossCoSENT
from samesense.losses.cross_entropy import CrossEntropy
from samesense.losses.mse import CrossMSE
from tests.references.cosent import cosent as reference
from tests.training.registered import specs

N = 24


@pytest.fixture
def model(tiny_trunk):
    encoder = build_cross(str(tiny_trunk), device="cpu").eval()
    with torch.no_grad():
        encoder[0].model.classifier.weight.mul_(200)  # logits far apart
    return encoder


@pytest.fixture
def columns(sentences):
    return [[sentences[i % 40] for i in range(N)], [sentences[(7 * i + 3) % 40] for i in range(N)]]


GRADES = torch.arange(N).remainder(5) / 4  # with ties


@pytest.mark.parametrize(("temperature", "margin"), [(1.0, 0.0), (0.05, 0.0), (2.0, 0.3)])
def test_cosent_is_equation_11(model, columns, temperature, margin):
    logits = as_logits(model)(list(zip(*columns, strict=True)))
    loss = CrossCoSENT(model, temperature=temperature, margin=margin)(columns, GRADES)
    assert loss.item() == pytest.approx(reference(logits, GRADES.tolist(), temperature, margin), rel=1e-4)


def test_lambda_is_1_unless_given(model):
    assert CrossCoSENT(model).get_config_dict() == {"temperature": 1.0, "margin": 0.0, "mini_batch_num_tokens": None}


def test_cross_entropy_is_the_usual_one(model, columns):
    logits = as_logits(model)(list(zip(*columns, strict=True)))
    by_hand = [
        -y * math.log(1 / (1 + math.exp(-x))) - (1 - y) * math.log(1 / (1 + math.exp(x)))
        for x, y in zip(logits, GRADES.tolist(), strict=True)
    ]
    loss = CrossEntropy(model)(columns, GRADES)
    assert loss.item() == pytest.approx(sum(by_hand) / N, rel=1e-4)
    torch.testing.assert_close(loss, BinaryCrossEntropyLoss(model)(columns, GRADES), rtol=1e-5, atol=1e-6)


def test_squared_error_is_that_of_the_logits(model, columns):
    logits = as_logits(model)(list(zip(*columns, strict=True)))
    signed = 2 * GRADES - 1  # a cosine's scale
    by_hand = sum((x - y) ** 2 for x, y in zip(logits, signed.tolist(), strict=True)) / N
    assert CrossMSE(model)(columns, signed).item() == pytest.approx(by_hand, rel=1e-4)


def gradient(model, objective, columns):
    model.zero_grad()
    labels = GRADES
    if objective.grouped:
        labels = torch.stack([GRADES, torch.arange(N) // 6], dim=1)
    objective(columns, labels).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("kind", [*(spec.module for spec in specs("cross").values()), CrossMSE])
def test_neither_value_nor_gradient_depends_on_the_token_budget(model, columns, kind):
    model.double()  # CoSENT's terms cancel in the bias: float32 leaves noise there
    whole = gradient(model, kind(model), columns)
    assert whole.norm() > 1e-3
    for budget in (15, 60):
        chunked = gradient(model, kind(model, mini_batch_num_tokens=budget), columns)
        torch.testing.assert_close(chunked, whole, rtol=1e-8, atol=1e-12)


def test_labels_with_groups_come_as_the_collator_leaves_them(model, columns):
    groups = torch.arange(N) // 6
    rows = torch.stack([GRADES, groups], dim=1)
    logits = as_logits(model)(list(zip(*columns, strict=True)))
    expected = reference(logits, GRADES.tolist(), 1.0, groups=groups.tolist())
    collated = CrossEncoderDataCollator(model.preprocess)(
        [{"a": a, "b": b, "label": row} for a, b, row in zip(*columns, rows.tolist(), strict=True)]
    )
    for labels in (rows, collated["label"]):
        assert CrossCoSENT(model, grouped=True)(columns, labels).item() == pytest.approx(expected, rel=1e-4)
    with pytest.raises(ValueError) as error:
        CrossCoSENT(model)(columns, collated["label"])
    assert str(error.value) == "CrossCoSENT needs one label for each of 24 pairs; received 24 lists."


def test_a_batch_of_one_label_costs_nothing(model, columns):
    loss = CrossCoSENT(model)(columns, torch.ones(N))
    loss.backward()
    assert loss.item() == 0
    assert all(p.grad is None or not p.grad.any() for p in model.parameters())


def test_the_loss_is_formed_in_float32(model, columns):
    with torch.autocast("cpu", torch.bfloat16):
        for kind in (CrossCoSENT, CrossEntropy):
            assert kind(model)(columns, GRADES).dtype == torch.float32


@pytest.mark.parametrize("kind", [CrossCoSENT, CrossEntropy, CrossMSE])
def test_what_does_not_fit_is_refused(model, columns, kind):
    name = kind.__name__
    for received, labels in (("none", None), ("labels of shape (24, 2)", torch.ones(N, 2))):
        with pytest.raises(ValueError) as error:
            kind(model)(columns, labels)
        assert str(error.value) == f"{name} needs one label for each of 24 pairs; received {received}."
    with pytest.raises(ValueError, match=f"{name} takes two text columns; received 3"):
        kind(model)([*columns, columns[0]], GRADES)
    model[0].model.config.num_labels = 2
    with pytest.raises(ValueError) as error:
        kind(model)
    assert str(error.value) == f"{name} takes a cross-encoder with 1 logit a pair; this one has 2."


def test_cross_entropy_takes_probabilities(model, columns):
    with pytest.raises(ValueError, match=r"CrossEntropy takes labels from 0 to 1; received 1\.25"):
        CrossEntropy(model)(columns, GRADES + 0.25)
