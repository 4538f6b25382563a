"""Run by test_gather.py: each of two ranks holds an unequal part of a batch; rank 0 writes loss and gradient.

One launch for all kinds of models, and both ranks are forked from a process that has imported everything, since most of
the time goes into imports.
"""

import gc
import importlib.util
import json
import os
import socket
import sys
from datetime import timedelta
from itertools import product
from pathlib import Path

import torch
from torch import distributed as dist
from torch.nn.parallel import DistributedDataParallel

from samesense.execution.ranks import finish
from samesense.losses.base import nest
from samesense.losses.gather import gather
from samesense.losses.info_nce import InfoNCE, projection
from samesense.losses.mlm import IGNORED, InfoNCEWithMLM
from samesense.losses.multi_positive import MultiPositive
from samesense.losses.rank_cse import RankCSE
from samesense.losses.sup_con import SupCon
from samesense.losses.triplet import BatchTriplet
from tests.conftest import WORDS
from tests.training import cross_two_ranks, ragged_two_ranks, resumed_two_ranks
from tests.training.bert import DIM, Encoder, gradient
from tests.training.registered import specs, trained_on


def every_fifth(ids, attention):
    """Dropout by token id, so that it does not depend on the rank that holds the token."""
    chosen = (ids % 5 == 0) & attention.bool()
    return torch.where(chosen, 1, ids), torch.where(chosen, ids, IGNORED)


TEACHERS = [torch.randn(13, dim, generator=torch.Generator().manual_seed(dim)).double().__getitem__ for dim in (2, 3)]
REGISTERED = specs("bi")
LOSSES = {
    "info_nce": lambda model, budget: InfoNCE(model, mini_batch_num_tokens=budget),
    "info_nce both": lambda model, budget: InfoNCE(model, symmetric=True, hardness=2.0, mini_batch_num_tokens=budget),
    "multi_positive": lambda model, budget: MultiPositive(model, positives=2, mini_batch_num_tokens=budget),
    "sup_con": lambda model, budget: SupCon(model, mini_batch_num_tokens=budget),
    "batch_all": lambda model, budget: BatchTriplet(model, mining="all", mini_batch_num_tokens=budget),
    "batch_hard": lambda model, budget: BatchTriplet(model, mini_batch_num_tokens=budget),
    "simcse": lambda model, budget: seeded(lambda: InfoNCE(model, head=projection(8), mini_batch_num_tokens=budget)),
    "simcse_mlm": lambda model, budget: seeded(
        lambda: InfoNCEWithMLM(model, mlm_head=torch.nn.Linear(8, 50), masking=every_fifth, head=projection(8))
    ),
    "rank_cse": lambda model, budget: seeded(
        lambda: RankCSE(
            model, teachers=TEACHERS, weights=[1, 2], rank="cosent", head=projection(8), mini_batch_num_tokens=budget
        )
    ),
}
LOSSES |= {
    name: lambda model, budget, spec=spec: seeded(lambda: registered(spec, model, budget))
    for name, spec in REGISTERED.items()
}
WIDTHS = ((), (4, 2))
"""Widths at which each loss is formed besides the whole: none, as most runs have it, and those of matryoshka."""
COLUMNS = {"info_nce": 4, "info_nce both": 4, "multi_positive": 4}
COLUMNS |= dict.fromkeys(("sup_con", "batch_all", "batch_hard", "simcse", "simcse_mlm", "rank_cse"), 1)


def seeded(make):
    torch.manual_seed(3)
    return make().double()


def registered(spec, model, budget):
    settings, targets, *_ = trained_on(spec, 11, mini_batch_num_tokens=budget)
    loss = spec.build(getattr(model, "module", model), settings, targets)
    loss.model = model  # as the trainer does under DDP
    return loss


def tokenised(texts):
    ids = [[WORDS.index(word) for word in text.split()] for text in texts]
    width = max(map(len, ids))
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row in ids])
    return {"input_ids": torch.tensor([row + [0] * (width - len(row)) for row in ids]), "attention_mask": mask}


def head_gradient(module):
    return [p.grad.flatten().tolist() for name, p in module.named_parameters() if "head." in name]


def batch(name):
    if name in REGISTERED:
        _, _, texts, labels = trained_on(REGISTERED[name], 11)
        return [tokenised(column) for column in texts], None if labels is None else torch.tensor(labels)
    g = torch.Generator().manual_seed(1)
    columns = []
    for _ in range(COLUMNS[name]):
        ids = torch.randint(50, (11, 7), generator=g)
        mask = (torch.arange(7) < torch.randint(1, 8, (11, 1), generator=g)).long()
        columns.append({"input_ids": ids, "attention_mask": mask})
    if name == "rank_cse":
        return columns, torch.tensor([7, 3, 12, 0, 5, 9, 1, 2, 10, 4, 8])  # rows of a corpus of 13
    if name in ("sup_con", "batch_all", "batch_hard"):
        return columns, torch.randint(2, (11,), generator=g)
    return columns, None


def part(columns, labels, start, end):
    rows = [{k: v[start:end] for k, v in column.items()} for column in columns]
    return rows, None if labels is None else labels[start:end]


def made(name, model, budget, widths):
    loss = LOSSES[name](model, budget)
    nest(loss, widths, DIM)
    return loss


def shared_out():
    rank = dist.get_rank()
    model = DistributedDataParallel(Encoder(), find_unused_parameters=True)  # as the trainer does
    rows = (0, 7) if rank == 0 else (7, 11)
    out = {}
    for name, widths in product(LOSSES, WIDTHS):
        columns, labels = part(*batch(name), *rows)
        for budget in (None, 9):
            model.zero_grad()
            loss_module = made(name, model, budget, widths)
            loss = loss_module(columns, labels)
            loss.backward()
            out[f"{name} {widths} {budget}"] = [
                loss.item(),
                gradient(model.module).tolist(),
                head_gradient(loss_module),
            ]
    return {**out, "gathered": gather(torch.arange(3 - rank) + 10 * rank).tolist()}


def adapted():
    """An encoder with adapters that do something, and what they learn; none where their package is not installed."""
    if importlib.util.find_spec("peft") is None:
        return None
    from peft import LoraConfig
    from peft.tuners.lora import LoraModel

    model = Encoder()
    LoraModel(model.bert, {"default": LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False)}, "default")
    return model.double()


def with_adapters(model, rows):
    """Return loss and gradient of CoSENT on rows of its batch, without a token budget and with one."""
    out = []
    for budget in (None, 9):
        model.zero_grad()
        columns, labels = part(*batch("cosent"), *rows)
        loss = LOSSES["cosent"](model, budget)(columns, labels)
        loss.backward()
        out.append([loss.item(), gradient(getattr(model, "module", model)).tolist()])
    return out


def adapters_shared_out():
    model = adapted()
    if model is None:
        return None
    wrapped = DistributedDataParallel(model, find_unused_parameters=True)
    return with_adapters(wrapped, (0, 7) if dist.get_rank() == 0 else (7, 11))


def run_rank(out_path, trunk, folder):
    dist.init_process_group("gloo", timeout=timedelta(seconds=60))
    out = {"bi": shared_out(), "cross": cross_two_ranks.shared_out(), "ragged": ragged_two_ranks.shared_out()}
    out["adapters"] = adapters_shared_out()
    out["packed"] = cross_two_ranks.packed_shared_out(trunk)
    out["resumed"] = resumed_two_ranks.shared_out(trunk, folder)
    if dist.get_rank() == 0:
        Path(out_path).write_text(json.dumps(out))
    finish()


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


if __name__ == "__main__":
    os.environ.update(WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=str(free_port()))
    gc.collect()
    gc.freeze()  # or each training searches all that was imported for garbage
    ranks = []
    for rank in range(2):
        process = os.fork()
        if process == 0:
            os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank))
            run_rank(*sys.argv[1:])
        ranks.append(process)
    statuses = [os.waitpid(process, 0)[1] for process in ranks]
    sys.exit(any(statuses))
