"""NaN and infinity in every place of every loss, module, metric and setting: refused by name; empty batches hold."""

import inspect
import itertools
import math
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
import torch
from pydantic import BaseModel

from samesense import losses, metrics
from samesense.errors import ConfigError, DataError
from samesense.execution.settings import Settings
from samesense.inference.calibration.fit import CalibrationSettings
from samesense.losses.angle import AnglE
from samesense.losses.contrastive import Contrastive
from samesense.losses.cosent import CoSENT, CrossCoSENT
from samesense.losses.cosine import NotFiniteError, cosine_matrix
from samesense.losses.cross_entropy import CrossEntropy
from samesense.losses.distillation import Distillation
from samesense.losses.info_nce import InfoNCE
from samesense.losses.mse import MSE, CrossMSE
from samesense.losses.multi_positive import MultiPositive
from samesense.losses.rank_cse import RankCSE
from samesense.losses.softmax import Softmax
from samesense.losses.sup_con import SupCon
from samesense.losses.triplet import BatchTriplet, Triplet
from samesense.recipes.methods import METHODS

BAD = (math.nan, math.inf, -math.inf)
N = 6
DIM = 4


def rows(n=N, dim=DIM, seed=0):
    return torch.randn(n, dim, generator=torch.Generator().manual_seed(seed))


def scores(n=N, m=None, seed=0):
    shape = (n,) if m is None else (n, m)
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def binary(n=N):
    return (torch.arange(n) % 2).float()


# per function: its inputs for a number of rows, and its numeric settings
FUNCTIONS = {
    losses.cosent: (lambda n: (scores(n), torch.arange(n).float()), ("temperature", "margin")),
    losses.contrastive: (lambda n: (scores(n), binary(n)), ("threshold",)),
    losses.mse: (lambda n: (scores(n), scores(n, seed=1)), ()),
    losses.softmax: (lambda n: (rows(n, 3), torch.arange(n) % 3), ()),
    losses.softmax_features: (lambda n: (rows(n), rows(n, seed=1)), ()),
    losses.row_cosine: (lambda n: (rows(n), rows(n, seed=1)), ()),
    losses.cosine_matrix: (lambda n: (rows(n), rows(n, seed=1)), ()),
    losses.angle_scores: (lambda n: (rows(n), rows(n, seed=1)), ()),
    losses.triplet: (lambda n: (rows(n), rows(n, seed=1), rows(n, seed=2)), ("margin",)),
    losses.batch_all: (lambda n: (rows(n), binary(n)), ("margin",)),
    losses.batch_hard: (lambda n: (rows(n), binary(n)), ("margin",)),
    losses.sup_con: (lambda n: (rows(n), binary(n)), ("temperature",)),
    losses.info_nce: (
        lambda n: (rows(n), rows(n, seed=1), rows(n, seed=2)),
        ("temperature", "own_negative_weight", "hardness"),
    ),
    losses.info_nce_scores: (lambda n: (scores(n, n),), ("temperature",)),
    losses.js_consistency: (lambda n: (scores(n, n),), ("temperature",)),
    losses.minus_entropy: (lambda n: (scores(n, n),), ("temperature",)),
    losses.listnet: (lambda n: (scores(n, n), scores(n, n, seed=1)), ("student_temperature", "teacher_temperature")),
    losses.listmle: (lambda n: (scores(n, n), scores(n, n, seed=1)), ("student_temperature",)),
    losses.row_cosent: (lambda n: (scores(n, n), scores(n, n, seed=1)), ("temperature",)),
    losses.rank_cse: (
        lambda n: (scores(n, n), scores(n, n, seed=1)),
        ("contrast", "beta", "gamma", "tau1", "tau2", "tau3"),
    ),
    losses.multi_positive: (lambda n: (rows(n), rows(n, seed=1), rows(n, seed=2)), ("temperature", "hardness")),
}
FIXED = {
    losses.listnet: {"student_temperature": 0.1, "teacher_temperature": 0.1},
    losses.listmle: {"student_temperature": 0.1},
    losses.rank_cse: {"rank": "listnet"},
}


def settings_of(function, n=N):
    owners = {"positive_owner": torch.arange(n)} if function is losses.multi_positive else {}
    return {**FIXED.get(function, {}), **owners}


def value_of(output):
    return output.total if hasattr(output, "total") else output


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_value_that_is_not_finite_is_refused_wherever_it_stands(function):
    make, numbers = FUNCTIONS[function]
    assert torch.isfinite(value_of(function(*make(N), **settings_of(function)))).all()
    draw = np.random.default_rng(0)
    for bad, position in itertools.product(BAD, range(len(make(N)))):
        tensors = [tensor.clone() for tensor in make(N)]
        if not tensors[position].is_floating_point():
            continue
        tensors[position].view(-1)[int(draw.integers(tensors[position].numel()))] = bad
        for moves in (False, True):
            inputs = [x.requires_grad_(moves) if x.is_floating_point() else x for x in tensors]
            with pytest.raises(ValueError, match=r"takes .*(nan|inf)"):
                function(*inputs, **settings_of(function))
    for bad, name in itertools.product(BAD, numbers):
        with pytest.raises(ValueError, match=name.split("_")[0]):
            function(*make(N), **{**settings_of(function), name: bad})


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_an_empty_batch_is_0_with_a_gradient_or_refused(function):
    inputs = [x.requires_grad_() if x.is_floating_point() else x for x in FUNCTIONS[function][0](0)]
    try:
        value = value_of(function(*inputs, **settings_of(function, 0)))
    except ValueError as error:
        assert type(error) is ValueError and "(0, 0)" in str(error), error
        return
    assert value.detach().sum().item() == 0.0 and torch.isfinite(value).all()
    if value.requires_grad:
        value.sum().backward()
    else:
        assert value.numel() == 0 or function.__name__ in ("cosent",), "a constant has no gradient"


def test_teachers_are_refused_too():
    finite = rows()
    bad = rows()
    bad[2, 1] = math.nan
    with pytest.raises(NotFiniteError, match="cosine_matrix takes finite numbers"):
        losses.teacher_scores([finite, bad], [1, 1])
    for weight in BAD:
        with pytest.raises(ValueError, match="weights"):
            losses.teacher_scores([finite, finite], [1, weight])
    log = torch.tensor([0.0, -math.inf])
    assert losses.js_divergence(log, log.flip(0)) > 0.69
    for value in (math.nan, math.inf):
        with pytest.raises(NotFiniteError, match="log_q"):
            losses.js_divergence(log, torch.tensor([0.0, value]))


def teacher(numbers):
    return rows(N, 5, seed=3)[numbers]


NOTHING = torch.nn.Identity()
MODULES = {
    "CoSENT": (CoSENT, {}, 2, torch.arange(N).float()),
    "CoSENT of angles": (CoSENT, {"similarity": "angle"}, 2, torch.arange(N).float()),
    "Contrastive": (Contrastive, {}, 2, binary()),
    "MSE": (MSE, {}, 2, scores()),
    "Softmax": (Softmax, {"classes": 2, "dim": DIM}, 2, binary().long()),
    "Triplet": (Triplet, {}, 3, None),
    "InfoNCE": (InfoNCE, {}, 3, None),
    "InfoNCE of views": (InfoNCE, {}, 2, None),
    "MultiPositive": (MultiPositive, {"positives": 1}, 3, None),
    "SupCon": (SupCon, {}, 1, binary()),
    "BatchTriplet": (BatchTriplet, {}, 1, binary()),
    "AnglE": (AnglE, {"positive_above": 0.5}, 2, binary()),
    "RankCSE": (RankCSE, {"teachers": [teacher], "rank": "listnet"}, 2, torch.arange(N)),
    "Distillation": (Distillation, {"teachers": [teacher], "widths": [5], "dim": DIM}, 2, torch.arange(N)),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_refuse_what_their_functions_do(name):
    kind, settings, columns, labels = MODULES[name]
    module = kind(NOTHING, **settings)
    embeddings = [rows(seed=column).requires_grad_() for column in range(columns)]
    assert torch.isfinite(module.compute_loss_from_embeddings(embeddings, labels))
    for bad, column in itertools.product(BAD, range(columns)):
        copies = [x.detach().clone() for x in embeddings]
        copies[column][3, 2] = bad
        with pytest.raises(NotFiniteError):
            module.compute_loss_from_embeddings([x.requires_grad_() for x in copies], labels)
    if labels is not None and labels.is_floating_point():
        for bad in BAD:
            spoilt = labels.clone()
            spoilt[2] = bad
            with pytest.raises(ValueError, match=r"nan|inf"):
                module.compute_loss_from_embeddings(embeddings, spoilt)


@pytest.mark.parametrize("name", MODULES)
def test_modules_refuse_settings_that_are_not_finite(name):
    kind, settings, _, _ = MODULES[name]
    numbers = {
        parameter.name: parameter.default
        for parameter in inspect.signature(kind).parameters.values()
        if isinstance(parameter.default, float) or parameter.name in ("triplet_margin", "positive_above")
    }
    for bad, number in itertools.product(BAD, numbers):
        with pytest.raises(ValueError, match=r"nan|inf"):
            kind(NOTHING, **{**settings, number: bad})
    if "teachers" in settings:
        for bad, number in itertools.product(BAD, ("gamma", "tau1", "tau2", "tau3", "beta", "contrast")):
            with pytest.raises(ValueError, match=r"nan|inf"):
                kind(NOTHING, **{**settings, number: bad})
        with pytest.raises(ValueError, match="weight"):
            kind(NOTHING, **{**settings, "weights": [math.nan]})


@pytest.mark.parametrize("kind", [CrossCoSENT, CrossEntropy, CrossMSE])
def test_losses_of_logits_refuse_them_and_take_empty_batches(kind):
    module = kind(NOTHING)
    for bad, side in itertools.product(BAD, range(2)):
        tensors = [scores(), scores(seed=1)]
        tensors[side][1] = bad
        with pytest.raises(ValueError, match=r"nan|inf"):
            module.loss(tensors[0].requires_grad_(), tensors[1])
    assert module.loss(scores(0).requires_grad_(), scores(0)).item() == 0.0
    if kind is CrossCoSENT:
        for bad, name in itertools.product(BAD, ("temperature", "margin")):
            with pytest.raises(ValueError, match=name):
                kind(NOTHING, **{name: bad})


METRICS = [
    function
    for name in metrics.__all__
    if inspect.isfunction(function := getattr(metrics, name))
    and {"scores", "labels"} <= inspect.signature(function).parameters.keys()
]


@pytest.mark.parametrize("metric", METRICS, ids=lambda metric: metric.__name__)
def test_metrics_refuse_them_in_every_place(metric):
    draw = np.random.default_rng(0)
    for bad, side in itertools.product(BAD, ("scores", "labels")):
        arrays = {"scores": draw.random(40), "labels": (draw.random(40) > 0.5).astype(float)}
        arrays[side][int(draw.integers(40))] = bad
        required = {
            name: {"metric": "spearman", "statistic": "spearman", "objective": "f1"}.get(name, 0.5)
            for name, parameter in inspect.signature(metric).parameters.items()
            if (parameter.default is inspect.Parameter.empty or name == "precision") and name not in arrays
        }
        with pytest.raises((DataError, ValueError), match=r"nan|inf"):
            metric(**arrays, **required)


def number_fields(kind):
    for name, field in kind.model_fields.items():
        if "float" in str(field.annotation) and "Literal" not in str(field.annotation):
            yield name, str(field.annotation)


@pytest.mark.parametrize("kind", [method.settings for method in METHODS.values()], ids=lambda kind: kind.__name__)
def test_settings_of_methods_refuse_them(kind):
    assert issubclass(kind, Settings) and issubclass(kind, BaseModel)
    for (name, annotation), bad in itertools.product(number_fields(kind), BAD):
        value = (bad, bad) if "tuple" in annotation else bad
        with pytest.raises((ConfigError, ValueError), match=r"finite|at (least|most)|greater|less"):
            kind(**{name: value})


def test_settings_of_a_calibration_refuse_them():
    assert is_dataclass(CalibrationSettings)
    for field, bad in itertools.product(fields(CalibrationSettings), BAD):
        if "float" in str(field.type):
            with pytest.raises(ConfigError, match=r"nan|inf"):
                CalibrationSettings(**{field.name: bad})


def test_cosines_of_finite_vectors_stay_finite():
    large = torch.tensor([[3e38, -3e38], [1e-45, 0.0], [0.0, 0.0]])
    assert torch.isfinite(cosine_matrix(large, large)).all()
