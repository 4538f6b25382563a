"""The part of two_ranks.py with cross-encoders: each rank holds an unequal part of a batch of pairs."""

from contextlib import nullcontext

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from samesense.encoder.assembly.build_cross import build_cross
from samesense.encoder.forward.packing import packing, takes_packed_texts
from samesense.losses.mse import CrossMSE
from tests.training.registered import specs, trained_on

ROWS = 11
REGISTERED = specs("cross")
GROUPED = "cosent, grouped"
LOSSES = [*REGISTERED, "mse", GROUPED]


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


def made(name, model, budget):
    """Return a loss module, and the columns and labels of a whole batch."""
    if name in (*REGISTERED, GROUPED):
        spec = REGISTERED[name.removesuffix(", grouped")]
        options = {"groups": "first"} if name == GROUPED else {}
        settings, targets, columns, labels = trained_on(spec, ROWS, mini_batch_num_tokens=budget, **options)
        return spec.build(model, settings, targets), columns, labels
    _, _, columns, labels = trained_on(REGISTERED["cosent"], ROWS)
    return CrossMSE(model, mini_batch_num_tokens=budget), columns, labels


def loss_and_gradient(name, model, inner, rows, budget=None):
    inner.zero_grad()
    module, columns, labels = made(name, inner, budget)
    module.model = model  # as the trainer does
    loss = module([column[rows] for column in columns], torch.tensor(labels[rows]))
    loss.backward()
    return [loss.item(), inner.table.weight.grad.flatten().tolist()]


def shared_out():
    model = DistributedDataParallel(CrossModel())
    model.preprocess = model.module.preprocess  # as the trainer does
    rows = slice(0, 7) if dist.get_rank() == 0 else slice(7, 11)
    return {
        f"{name} {budget}": loss_and_gradient(name, model, model.module, rows, budget)
        for name in LOSSES
        for budget in (None, 12)
    }


def packed_loss_and_gradient(folder, rows, *, pack, distributed):
    """Return loss and gradient of CoSENT with a real model; pairs are packed or padded."""
    model = build_cross(str(folder), device="cpu").eval()
    wrapped = DistributedDataParallel(model, find_unused_parameters=True) if distributed else model
    module, columns, labels = made("cosent", model, None)
    module.model, module.tokenise = wrapped, model.preprocess
    with packing(model) if pack else nullcontext():
        assert takes_packed_texts(model) == pack
        loss = module([column[rows] for column in columns], torch.tensor(labels[rows]))
        loss.backward()
    gradients = [p.grad for p in model.parameters()]
    return [loss.item(), [value for grad in gradients if grad is not None for value in grad.flatten().tolist()]]


def packed_shared_out(folder):
    rows = slice(0, 7) if dist.get_rank() == 0 else slice(7, 11)
    return packed_loss_and_gradient(folder, rows, pack=True, distributed=True)
