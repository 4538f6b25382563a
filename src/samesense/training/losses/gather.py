"""Rows of all devices in one tensor, with the gradient of the joined batch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch import distributed as dist


def gather(rows: Tensor) -> Tensor:
    """Return the rows of every rank, in order of rank; ``rows`` itself where there is one process.

    Ranks may bring different numbers of rows (the last batch of an epoch). A loss formed from what comes back is the
    loss of the joined batch on every rank, and after DDP has averaged the ranks' gradients, so is the gradient: DDP
    divides the sum of the ranks' parts by their number, and each part is multiplied by it here.

    Args:
        rows: ``(own rows, ...)``; all dimensions but the first must agree between ranks.

    Returns:
        ``(rows of all ranks, ...)``, differentiable in the own rows.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return rows
    gathered: Tensor = _Gather.apply(rows)  # type: ignore[no-untyped-call]
    return gathered


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        world, rank = dist.get_world_size(), dist.get_rank()
        own = torch.tensor([rows.shape[0]], device=rows.device)
        counts = [torch.zeros_like(own) for _ in range(world)]
        dist.all_gather(counts, own)
        sizes = [int(count) for count in counts]
        padded = rows.new_zeros(max(sizes), *rows.shape[1:])
        padded[: rows.shape[0]] = rows
        parts = [torch.empty_like(padded) for _ in range(world)]
        dist.all_gather(parts, padded)
        ctx.start, ctx.rows, ctx.world = sum(sizes[:rank]), rows.shape[0], world
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        own = gradients[0][ctx.start : ctx.start + ctx.rows]
        return own * int(ctx.world)
