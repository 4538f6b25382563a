"""The part of two_ranks.py with tuples: loss and gradient of a batch shared out to two processes."""

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from samesense.training.losses.tuple_batches import TupleBatchTriplet, TupleMultiPositive, TupleSupCon
from samesense.training.tuple_batches import TupleBatches

PLACES = (2, 1)
TUPLES = [
    (["p0", "a0"], ["n0"]), (["p1"], ["p0"]), (["p2", "p3"], []), (["a0"], ["n4"]), (["p5"], ["n0"]),
]  # fmt: skip
ANCHORS = ["a0", "a1", "a2", "a3", "a4"]
NAMES = ["a0", "a1", "a2", "a3", "a4", "p0", "p1", "p2", "p3", "p5", "n0", "n4"]
OBJECTIVES = {
    "supmpn": lambda model: TupleMultiPositive(model, positives=2),
    "supcon": lambda model: TupleSupCon(model, positives=2),
    "batch-hard": lambda model: TupleBatchTriplet(model, positives=2),
}


class Encoder(nn.Module):
    """A vector a text."""

    def __init__(self):
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.table = nn.Parameter(torch.randn(len(NAMES), 6, generator=generator, dtype=torch.float64))

    def forward(self, features):
        return {"sentence_embedding": self.table[features["input_ids"][:, 0]]}


def preprocess(texts):
    ids = torch.tensor([[NAMES.index(text)] for text in texts])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def batch(rows):
    batches = TupleBatches(
        ANCHORS, lambda row, epoch: TUPLES[row], preprocess, places=PLACES, key=NAMES.index, apart=False
    )
    made = batches([{"label": row} for row in rows])
    return [{name.removeprefix("texts_"): value for name, value in made.items() if name != "label"}], made["label"]


def results(model, table, rows):
    found = {}
    for name, make in OBJECTIVES.items():
        model.zero_grad()
        loss = make(model)(*batch(rows))
        loss.backward()
        found[name] = [loss.item(), *table.grad.flatten().tolist()]
    return found


def shared_out():
    wrapped = DistributedDataParallel(Encoder())
    return results(wrapped, wrapped.module.table, [0, 1, 2] if dist.get_rank() == 0 else [3, 4])
