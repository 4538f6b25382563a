"""Gathers the rows of all processes, so that a loss is that of the joined batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist


def gather(rows: Tensor) -> Tensor:
    """Return the rows of all ranks, in order of rank; with one process, ``rows`` itself.

    Ranks may have different numbers of rows (in the last batch of an epoch), but agree in all other dimensions. A loss
    of the result is that of the joined batch on every rank, and so is its gradient, after DDP has averaged the
    gradients of the ranks. The result ``(rows of all ranks, ...)`` is differentiable in this rank's rows.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return rows
    gathered: Tensor = _Gather.apply(rows)  # type: ignore[no-untyped-call]
    return gathered


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        world = dist.get_world_size()
        rank = dist.get_rank()
        row_count = torch.tensor([rows.shape[0]], device=rows.device)
        counts = [torch.zeros_like(row_count) for _ in range(world)]
        dist.all_gather(counts, row_count)
        sizes = [int(count) for count in counts]
        # all_gather needs equal shapes, so shorter ranks are padded to the longest
        padded = rows.new_zeros(max(sizes), *rows.shape[1:])
        padded[: rows.shape[0]] = rows
        received = [torch.empty_like(padded) for _ in range(world)]
        dist.all_gather(received, padded)
        ctx.start = sum(sizes[:rank])
        ctx.rows = rows.shape[0]
        ctx.world = world
        return torch.cat([rank_rows[:size] for rank_rows, size in zip(received, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        gradient = gradients[0][ctx.start : ctx.start + ctx.rows]
        return gradient * int(ctx.world)  # DDP divides the sum of the ranks' gradients by their number
