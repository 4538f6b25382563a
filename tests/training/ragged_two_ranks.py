"""The part of two_ranks.py with tuples: loss and gradient of a batch shared out to two processes."""

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from samesense.losses.gist import TupleGIST
from samesense.losses.multi_positive import TupleMultiPositive
from samesense.losses.sup_con import TupleSupCon
from samesense.losses.triplet import TupleBatchTriplet
from samesense.training.tuple_batches import TupleBatches
from tests.training.bert import Encoder, gradient

TUPLES = [
    (["p0", "a0"], ["n0"]),
    (["p1"], ["p0"]),
    (["p2", "p3"], []),
    (["a0"], ["n4"]),
    (["p5"], ["n0"]),
]
POSITIVES = [["p0", "a0"], ["p1"], ["p2", "p3", "p5"], ["a0", "p1", "n0"], ["p5"]]  # some are not drawn
ANCHORS = ["a0", "a1", "a2", "a3", "a4"]
NAMES = ["a0", "a1", "a2", "a3", "a4", "p0", "p1", "p2", "p3", "p5", "n0", "n4"]
OBJECTIVES = {
    "supmpn": lambda model, budget: TupleMultiPositive(model, positives=2, mini_batch_num_tokens=budget),
    "supmpn, both": lambda model, budget: TupleMultiPositive(
        model, positives=2, symmetric=True, hardness=2.0, mini_batch_num_tokens=budget
    ),
    "supcon": lambda model, budget: TupleSupCon(model, positives=2, mini_batch_num_tokens=budget),
    "batch-hard": lambda model, budget: TupleBatchTriplet(model, positives=2, mini_batch_num_tokens=budget),
    "gist": lambda model, budget: TupleGIST(model, guide=lambda rows: GUIDE[rows], mini_batch_num_tokens=budget),
}
GUIDE = torch.randn(len(NAMES), 3, generator=torch.Generator().manual_seed(0))
"""Vectors of a guide, by the keys of the texts."""


def preprocess(texts):
    ids = torch.tensor([[NAMES.index(text) + 1] for text in texts])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def batch(rows, positives):
    """Return the batch of some rows, with at most so many positives of each."""
    batches = TupleBatches(
        ANCHORS,
        lambda row, epoch: (TUPLES[row][0][:positives], TUPLES[row][1]),
        preprocess,
        places=(positives, 1),
        key=NAMES.index,
        positives=POSITIVES,
        apart=False,
    )
    columns = batches([{"label": row} for row in rows])
    return [{name.removeprefix("texts_"): value for name, value in columns.items() if name != "label"}], columns[
        "label"
    ]


def results(model, rows, budget):
    values = {}
    for name, make in OBJECTIVES.items():
        model.zero_grad()
        loss = make(model, budget)(*batch(rows, 1 if name == "gist" else 2))
        loss.backward()
        values[name] = [loss.item(), *gradient(model).tolist()]
    return values


def shared_out():
    model = DistributedDataParallel(Encoder(), find_unused_parameters=True)
    rows = [0, 1, 2] if dist.get_rank() == 0 else [3, 4]
    return {str(budget): results(model, rows, budget) for budget in (None, 4)}
