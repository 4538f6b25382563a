"""Run by test_cross_gather.py under torchrun: each rank holds an unequal part of a batch of pairs."""

import json
import sys
from datetime import timedelta
from pathlib import Path

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from samesense.execution.ranks import finish
from samesense.training.losses.cross import CrossCoSENT, CrossEntropy

PAIRS = [(f"{'ab' * (i % 4 + 1)}", f"{'ba' * (i % 3 + 1)}{i}") for i in range(11)]
LABELS = torch.arange(11).remainder(3) / 2
OBJECTIVES = {"cosent": CrossCoSENT, "cross-entropy": CrossEntropy}


class CrossModel(torch.nn.Module):
    """A cross-encoder small enough to be checked to the last digits: a weighted mean of the letters of a pair."""

    num_labels = 1

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(128, 1).double()

    def preprocess(self, pairs, prompt=None, task=None):
        letters = [[ord(letter) for letter in f"{first}|{second}"] for first, second in pairs]
        width = max(map(len, letters))
        ids = torch.tensor([row + [0] * (width - len(row)) for row in letters])
        return {"input_ids": ids, "attention_mask": (ids > 0).long()}

    def forward(self, features):
        mask = features["attention_mask"].unsqueeze(-1)
        return {"scores": (self.table(features["input_ids"]) * mask).sum(1) / mask.sum(1)}


def loss_and_gradient(make, model, inner, rows, budget=None):
    inner.zero_grad()
    objective = make(inner, mini_batch_num_tokens=budget)
    objective.model = model  # as the trainer does
    loss = objective([list(column) for column in zip(*PAIRS[rows], strict=True)], LABELS[rows])
    loss.backward()
    return [loss.item(), inner.table.weight.grad.flatten().tolist()]


if __name__ == "__main__":
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    model = DistributedDataParallel(CrossModel())
    model.preprocess = model.module.preprocess  # as the trainer does
    rows = slice(0, 7) if dist.get_rank() == 0 else slice(7, 11)
    out = {
        f"{name} {budget}": loss_and_gradient(make, model, model.module, rows, budget)
        for name, make in OBJECTIVES.items()
        for budget in (None, 12)
    }
    if dist.get_rank() == 0:
        Path(sys.argv[1]).write_text(json.dumps(out))
    finish()
