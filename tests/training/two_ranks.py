"""Run by test_gather.py under torchrun: each rank holds an unequal part of a batch; rank 0 writes loss and gradient."""

import json
import sys
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from samesense.training.gather import gather
from samesense.training.objective import MSE, Contrastive, CoSENT, Softmax
from samesense.training.ranks import finish
from samesense.training.tuple_objective import InfoNCE, MultiPositive, Triplet


class Encoder(torch.nn.Module):
    """Means token vectors: an encoder small enough to be checked to the last digits."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(50, 8).double()

    def forward(self, features):
        mask = features["attention_mask"].unsqueeze(-1)
        return {"sentence_embedding": (self.table(features["input_ids"]) * mask).sum(1) / mask.sum(1)}


OBJECTIVES = {
    "cosent": lambda model, budget: CoSENT(model, token_budget=budget),
    "contrastive": lambda model, budget: Contrastive(model, token_budget=budget),
    "mse": lambda model, budget: MSE(model, token_budget=budget),
    "softmax": lambda model, budget: seeded(Softmax, model, classes=2, dim=8, token_budget=budget),
    "triplet": lambda model, budget: Triplet(model, token_budget=budget),
    "info_nce": lambda model, budget: InfoNCE(model, token_budget=budget),
    "multi_positive": lambda model, budget: MultiPositive(model, positives=2, token_budget=budget),
}
COLUMNS = {"triplet": 3, "info_nce": 4, "multi_positive": 4}


def seeded(kind, *args, **kwargs):
    torch.manual_seed(3)
    return kind(*args, **kwargs).double()


def batch(name):
    g = torch.Generator().manual_seed(1)
    columns = []
    for _ in range(COLUMNS.get(name, 2)):
        ids = torch.randint(50, (11, 7), generator=g)
        mask = (torch.arange(7) < torch.randint(1, 8, (11, 1), generator=g)).long()
        columns.append({"input_ids": ids, "attention_mask": mask})
    return columns, torch.randint(4 if name == "cosent" else 2, (11,), generator=g)


def part(columns, labels, rows):
    return [{k: v[rows] for k, v in column.items()} for column in columns], labels[rows]


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    rank = dist.get_rank()
    model = DistributedDataParallel(Encoder())
    rows = slice(0, 7) if rank == 0 else slice(7, 11)
    out = {}
    for name, make in OBJECTIVES.items():
        columns, labels = part(*batch(name), rows)
        for budget in (None, 9):
            model.zero_grad()
            objective = make(model, budget)
            loss = objective(columns, labels)
            loss.backward()
            out[f"{name} {budget}"] = [loss.item(), model.module.table.weight.grad.flatten().tolist()]
    out["gathered"] = gather(torch.arange(3 - rank) + 10 * rank).tolist()
    if rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(out))
    finish()
