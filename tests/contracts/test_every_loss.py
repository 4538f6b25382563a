"""What holds for every loss, whatever its formula."""

import dataclasses
import inspect
from collections.abc import Callable

import pytest
import torch

from samesense import losses
from samesense.losses import angle_scores, cosent, multi_positive, rank_cse, softmax, softmax_features

NOT_LOSSES = {"RankDistillation", "cosine_matrix", "row_cosine", "softmax_features", "teacher_scores"}
"""What else the package exports."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A loss of some inputs: names of those with a gradient, then of the fixed ones; and what of them it covers."""

    loss: Callable
    moving: tuple[str, ...]
    fixed: tuple[str, ...] = ()
    settings: dict = dataclasses.field(default_factory=dict)
    covers: str = ""
    stopped: bool = False  # a part of the formula receives no gradient on purpose; its own test checks the gradient

    def __call__(self, inputs):
        return self.loss(*(inputs[name] for name in (*self.moving, *self.fixed)), **self.settings)


def several(anchors, positives, negatives, temperature=0.05, **settings):
    """Three positives and two negatives an anchor, in blocks, so that all inputs are permuted by anchor."""
    owner = torch.arange(len(anchors), device=anchors.device)
    return multi_positive(
        anchors,
        positives.flatten(0, 1),
        negatives.flatten(0, 1),
        positive_owner=owner.repeat_interleave(3),
        temperature=temperature,
        **settings,
    )


def guided(anchors, positives, guide, more, temperature=0.05, **settings):
    """Few candidates are false negatives to a guide whose anchors and positives are nearly the same."""
    near = guide + 0.1 * more[:, 0]
    return losses.gist(anchors, positives, guide=[guide, near], temperature=temperature, **settings)


def in_groups(loss):
    """Return a loss with its groups as third argument."""
    return lambda scores, labels, groups: loss(scores, labels, groups=groups)


def divergence(matrix, other):
    wide = torch.promote_types(matrix.dtype, torch.float32)
    return losses.js_divergence(matrix.log_softmax(1, dtype=wide), other.log_softmax(1, dtype=wide)).sum()


def classified(u, v, classes):
    return softmax(softmax_features(u, v, product=True)[:, 10:13], classes)


def distilled(matrix, teacher, rank, tau1=0.05, tau2=0.1):
    return rank_cse(matrix, teacher, rank=rank, tau1=tau1, tau2=tau2).total


NET = {"student_temperature": 0.05, "teacher_temperature": 0.025}
MLE = {"student_temperature": 0.05}
TRIPLE, CLASSES, LISTS = ("u", "v", "w"), ("classes",), ("teacher",)
CASES = {
    "angle": Case(lambda u, v, grades: cosent(angle_scores(u, v), grades), ("u", "v"), ("grades",), {}, "angle_scores"),
    "batch_all cosine": Case(losses.batch_all, ("u",), CLASSES),
    "batch_all euclidean": Case(losses.batch_all, ("u",), CLASSES, {"distance": "euclidean"}),
    "batch_hard cosine": Case(losses.batch_hard, ("u",), CLASSES),
    "batch_hard euclidean": Case(losses.batch_hard, ("u",), CLASSES, {"distance": "euclidean"}),
    "contrastive": Case(losses.contrastive, ("scores",), ("binary",)),
    "contrastive literal": Case(losses.contrastive, ("scores",), ("binary",), {"threshold": 0.1, "literal": True}),
    "cosent": Case(cosent, ("scores",), ("grades",)),
    "cosent grouped": Case(in_groups(cosent), ("scores",), ("grades", "classes"), {}, "cosent"),
    "gist": Case(guided, ("u", "v"), ("w", "few"), {}, "gist"),
    "gist all": Case(guided, ("u", "v"), ("w", "few"), {"guide_margin": 0.1, "margin_strategy": "relative"}, "gist"),
    "info_nce": Case(losses.info_nce, ("u", "v")),
    "info_nce all": Case(losses.info_nce, TRIPLE, (), {"own_negative_weight": 0.5, "symmetric": True}),
    "info_nce hardness": Case(losses.info_nce, TRIPLE, (), {"hardness": 3.0, "symmetric": True}, stopped=True),
    "info_nce_scores": Case(losses.info_nce_scores, ("matrix",)),
    "info_nce_scores sum": Case(losses.info_nce_scores, ("matrix",), (), {"reduction": "sum"}),
    "js_consistency": Case(losses.js_consistency, ("matrix",)),
    "js_divergence": Case(divergence, ("matrix", "other"), (), {}, "js_divergence"),
    "lambda_loss": Case(in_groups(losses.lambda_loss), ("scores",), ("grades", "classes"), {}, "lambda_loss"),
    "listmle": Case(losses.listmle, ("matrix",), LISTS, MLE),
    "listmle off": Case(losses.listmle, ("matrix",), LISTS, {**MLE, "include_diagonal": False, "reduction": "sum"}),
    "listnet": Case(losses.listnet, ("matrix",), LISTS, NET),
    "listnet full": Case(losses.listnet, ("matrix",), LISTS, {**NET, "include_diagonal": True, "reduction": "sum"}),
    "margin_mse": Case(in_groups(losses.margin_mse), ("scores",), ("targets", "classes"), {}, "margin_mse"),
    "minus_entropy": Case(losses.minus_entropy, ("matrix",)),
    "mse": Case(losses.mse, ("scores",), ("targets",)),
    "multi_positive": Case(several, ("u", "many", "few"), (), {}, "multi_positive"),
    "multi_positive symmetric": Case(several, ("u", "many", "few"), (), {"symmetric": True}, "multi_positive"),
    "multi_positive hardness": Case(
        several, ("u", "many", "few"), (), {"hardness": 3.0, "symmetric": True}, "multi_positive", stopped=True
    ),
    "rank_cse listnet": Case(distilled, ("matrix",), LISTS, {"rank": "listnet"}, "rank_cse"),
    "rank_cse listmle": Case(distilled, ("matrix",), LISTS, {"rank": "listmle"}, "rank_cse"),
    "rank_cse cosent": Case(distilled, ("matrix",), LISTS, {"rank": "cosent"}, "rank_cse"),
    "row_cosent": Case(losses.row_cosent, ("matrix",), LISTS),
    "row_cosent full": Case(losses.row_cosent, ("matrix",), LISTS, {"include_diagonal": True, "reduction": "sum"}),
    "softmax": Case(classified, ("u", "v"), CLASSES, {}, "softmax"),
    "sup_con": Case(losses.sup_con, ("u",), CLASSES),
    "triplet cosine": Case(losses.triplet, TRIPLE),
    "triplet euclidean": Case(losses.triplet, TRIPLE, (), {"distance": "euclidean"}),
}

every_loss = pytest.mark.parametrize("case", CASES.values(), ids=CASES)
every_precision = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])


def batch(n=12, dtype=torch.float64):
    g = torch.Generator().manual_seed(n)

    def normal(*shape):
        return torch.randn(*shape, generator=g, dtype=torch.float64).to(dtype)

    def cosines(*shape):
        return (torch.rand(*shape, generator=g, dtype=torch.float64) * 1.6 - 0.8).to(dtype)

    return {
        "u": normal(n, 4),
        "v": normal(n, 4),
        "w": normal(n, 4),
        "many": normal(n, 3, 4),
        "few": normal(n, 2, 4),
        "scores": cosines(n),
        "matrix": cosines(n, n),
        "other": cosines(n, n),
        "teacher": cosines(n, n),
        "targets": torch.rand(n, generator=g),
        "grades": torch.arange(n) % 4,
        "binary": torch.arange(n) % 2,
        "classes": torch.arange(n) % 3,
    }


def with_gradient(case, inputs):
    return {name: x.clone().requires_grad_(name in case.moving) for name, x in inputs.items()}


def test_no_loss_is_forgotten():
    covered = {case.covers or case.loss.__name__ for case in CASES.values()}
    assert covered == set(losses.__all__) - NOT_LOSSES
    assert losses.__all__ == sorted(losses.__all__)


def test_every_temperature_is_called_a_temperature():
    for name in losses.__all__:
        parameters = inspect.signature(getattr(losses, name)).parameters
        assert not {"scale", "tau", "lam", "size_average"} & set(parameters), name


@every_loss
def test_blocks_of_rows_change_neither_value_nor_gradient(case, monkeypatch):
    whole = with_gradient(case, batch(13))
    expected = case(whole)
    expected.backward()
    for block in (1, 60):
        cut = with_gradient(case, batch(13))
        monkeypatch.setattr("samesense.losses.cosine.BLOCK", block)
        value = case(cut)
        value.backward()
        torch.testing.assert_close(value, expected, rtol=1e-12, atol=1e-14)
        for name in case.moving:
            torch.testing.assert_close(cut[name].grad, whole[name].grad, rtol=1e-10, atol=1e-14)


@every_loss
@every_precision
def test_float32_inside_for_every_precision(case, dtype):
    inputs = with_gradient(case, batch(64, dtype))
    value = case(inputs)
    value.backward()
    wide = case({name: x.detach().double() if name in case.moving else x for name, x in inputs.items()})
    assert value.dtype == torch.float32
    assert value.shape == ()
    rounding = 2e-2 if case.loss is classified else 1e-4  # its features are what the head takes, not yet a loss
    assert value.item() == pytest.approx(wide.item(), rel=rounding, abs=1e-5)
    for name in case.moving:
        assert inputs[name].grad.dtype == dtype
        assert inputs[name].grad.isfinite().all(), name
        assert inputs[name].grad.abs().sum() > 0, name


@every_loss
def test_autocast_changes_nothing(case):
    inputs = batch(12, torch.float32)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = case(inputs)
    assert inside.dtype == torch.float32
    assert inside.item() == case(inputs).item()


@every_loss
def test_new_tensors_are_made_where_the_inputs_are(case):
    inputs = batch()
    with torch.device("meta"):  # where a tensor made without naming a device would now be, and fail
        assert case(inputs).device.type == "cpu"


@pytest.mark.parametrize("case", [case for case in CASES.values() if not case.stopped])
def test_gradient_is_that_of_the_value(case):
    inputs = batch(6)

    def value(*tensors):
        return case({**inputs, **dict(zip(case.moving, tensors, strict=True))})

    tensors = [inputs[name].clone().requires_grad_() for name in case.moving]
    # distances from a point to itself have no gradient, and nudging the point keeps them 0
    assert torch.autograd.gradcheck(value, tensors, atol=1e-6)


@pytest.mark.parametrize("case", [case for case in CASES.values() if case.fixed == LISTS])
def test_the_teacher_receives_no_gradient(case):
    inputs = with_gradient(case, batch())
    inputs["teacher"].requires_grad_()
    case(inputs).backward()
    assert inputs["teacher"].grad is None


@every_loss
def test_inputs_are_not_changed(case):
    inputs = with_gradient(case, batch())
    kept = {name: x.detach().clone() for name, x in inputs.items()}
    versions = {name: x._version for name, x in inputs.items()}
    case(inputs).backward()
    for name, x in inputs.items():
        assert torch.equal(x.detach(), kept[name]), name
        assert x._version == versions[name], name


@every_loss
def test_zeros_and_duplicates_keep_value_and_gradient_finite(case):
    inputs = batch(12, torch.float16)
    for name in ("u", "v", "w", "many", "few", "scores", "matrix"):
        inputs[name][:4] = 0
        inputs[name][4:8] = inputs[name][4]
    inputs["v"][6] = inputs["u"][6]
    inputs = with_gradient(case, inputs)
    value = case(inputs)
    value.backward()
    assert value.isfinite()
    assert all(inputs[name].grad.isfinite().all() for name in case.moving)


TEMPERATURES = ("temperature", "student_temperature", "tau1", "tau2")
TEMPERED = {
    name: case for name, case in CASES.items() if set(TEMPERATURES) & set(inspect.signature(case.loss).parameters)
}


@pytest.mark.parametrize("case", TEMPERED.values(), ids=TEMPERED)
def test_extreme_temperatures_stay_finite(case):
    accepted = set(TEMPERATURES) & set(inspect.signature(case.loss).parameters)
    for temperature in (1e-4, 1e3):
        extreme = dataclasses.replace(case, settings={**case.settings, **dict.fromkeys(accepted, temperature)})
        inputs = with_gradient(case, batch(31, torch.float16))
        value = extreme(inputs) / 31
        value.backward()
        assert value.isfinite()
        assert all(inputs[name].grad.isfinite().all() for name in case.moving)
