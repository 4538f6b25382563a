"""Whether a batch teaches is predicted from its texts and labels, and agrees with the gradient of the loss."""

import numpy as np
import pytest
import torch

from samesense.losses.lessons import IN_BATCH, Batch, drawn_batches
from samesense.losses.registry import PAIR_LOSSES

LABELS = {"contrastive": 2, "softmax": 3, "info-nce": 0, "triplet": 0, "cross-entropy": 2}
COLUMNS = {"triplet": 3}
ALWAYS_ACTIVE = {"triplet": {"triplet_margin": 3.0}, "contrastive": {"threshold": -1.0}}
"""Settings by which a margin is never reached, so that what can be compared costs something."""


def loss_of(spec, draw, *, grouped=False):
    options = {**ALWAYS_ACTIVE.get(spec.name, {})}
    if "temperature" in spec.fields:
        options["temperature"] = 1.0  # so that no gradient is too small to be seen
    if spec.name == "angle":
        options |= {
            "positive_above": 0.5,
            **{name: float(draw.integers(2)) for name in ("cosine_weight", "angle_weight")},
        }
        options["in_batch_weight"] = (
            float(draw.integers(2)) if options["cosine_weight"] + options["angle_weight"] else 1.0
        )
    if spec.name == "info-nce":
        options["symmetric"] = bool(draw.integers(2))
    if spec.name == "cosent":
        options["margin"] = float(draw.choice([0.0, 0.5, 1.0]))
    if spec.name == "softmax":
        options |= {"classes": 3, "dim": 8}
    if grouped and not spec.grouped:
        options["grouped"] = True
    module = spec.module
    loss = module.__new__(module)
    torch.nn.Module.__init__(loss)
    module.__init__(loss, torch.nn.Identity(), **options)
    return loss, options


CASES = [(spec, spec.grouped) for spec in PAIR_LOSSES.specs]
CASES += [(spec, True) for spec in PAIR_LOSSES.specs if "groups" in spec.fields]


@pytest.mark.parametrize(
    ("spec", "grouped"), CASES, ids=[f"{spec.encoder} {spec.name}{', grouped' * grouped}" for spec, grouped in CASES]
)
def test_a_batch_teaches_if_and_only_if_the_loss_has_a_gradient(spec, grouped):
    draw = np.random.default_rng(0)
    met = set()
    cancelled = 0
    for _ in range(150):
        rows = int(draw.integers(1, 5))
        texts = int(draw.integers(1, 6))
        columns = draw.integers(
            texts, size=(COLUMNS.get(spec.name, 2 + int(draw.integers(2)) * (spec.name == "info-nce")), rows)
        )
        kinds = LABELS.get(spec.name, 3)
        labels = draw.integers(kinds, size=rows) / (1 if kinds == 2 else 2) if kinds else None
        if spec.name == "softmax":
            labels = draw.integers(3, size=rows)
        loss, options = loss_of(spec, draw, grouped=grouped)
        table = torch.randn(texts, 8, dtype=torch.float64, requires_grad=True)
        groups = draw.integers(2, size=rows) if grouped else None
        label_rows = labels if groups is None else np.column_stack([labels, groups])
        targets = None if labels is None else torch.from_numpy(np.asarray(label_rows))
        if spec.encoder == "cross":
            pairs = torch.randn(rows, dtype=torch.float64, requires_grad=True)
            loss.loss(pairs, targets).backward()
            gradient = pairs.grad
        else:
            loss.double().compute_loss_from_embeddings(
                [table[torch.from_numpy(c)] for c in columns], targets
            ).backward()
            gradient = table.grad
        batch = Batch(columns.astype(np.uint64), None if labels is None else np.asarray(labels, float), options, groups)
        expected = bool(gradient is not None and gradient.abs().max() > 1e-9)
        lesson = spec.lesson.within_groups() if grouped else spec.lesson
        teaches = lesson.teaches(batch)
        assert teaches or not expected, (columns, labels, options)
        cancelled += teaches and not expected
        met.add(expected)
    assert True in met
    assert cancelled <= 15  # terms that are there, and that cancel each other out


def test_batches_are_drawn_as_the_run_draws_them():
    texts = np.arange(40, dtype=np.uint64).reshape(2, 20)
    texts[1, 10:] = 99
    labels = np.array([0.0] * 15 + [1.0] * 5)
    drawn = list(drawn_batches(20, 6, 0, "random", texts, labels))
    assert sorted(np.concatenate(drawn)) == list(range(20)) and list(map(len, drawn)) == [6, 6, 6, 2]
    aware = list(drawn_batches(20, 5, 0, "label-aware", texts, labels))
    assert [len(set(labels[rows])) for rows in aware] == [2] * 4
    for rows in drawn_batches(20, 6, 0, "no-duplicates", texts, labels):
        assert (texts[1, rows] == 99).sum() <= 1


def test_batches_of_groups_are_drawn_as_the_run_draws_them():
    groups = np.repeat(np.arange(10), 4)
    drawn = list(drawn_batches(40, 8, 0, "random", np.zeros((2, 40), np.uint64), np.zeros(40), groups))
    assert sorted(np.concatenate(drawn)) == list(range(40))
    assert all(len(set(groups[rows])) == 2 for rows in drawn)


def test_one_positive_everywhere_teaches_nothing_unless_there_are_negatives():
    canned = np.array([[0, 1, 2], [9, 9, 9]], dtype=np.uint64)
    assert not IN_BATCH.teaches(Batch(canned))
    assert IN_BATCH.teaches(Batch(np.vstack([canned, [7, 7, 7]]).astype(np.uint64)))
    some = np.vstack([canned, [7, 9, 9]]).astype(np.uint64)
    assert IN_BATCH.teaches(Batch(some, np.array([1.0, 0, 0])))
    assert not IN_BATCH.teaches(Batch(some, np.array([0.0, 0, 0])))
    assert not IN_BATCH.teaches(Batch(canned[:, :1]))
