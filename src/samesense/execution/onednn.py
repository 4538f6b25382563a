"""Matrix products of float32 inference on a CPU by oneDNN, where that is faster than what torch takes.

torch multiplies float32 matrices by MKL, whose kernels for processors of other makers than Intel use half of what
these can do. oneDNN comes with torch and makes its kernels for the processor at hand; torch takes it for bfloat16 only.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

WORTH = 1.2
"""How many times faster oneDNN must be to be taken."""


def fast_linear(device: torch.device, *, measured: bool = True) -> AbstractContextManager[Any]:
    """Return the context in which linear layers run as fast as this device can, in the same float32.

    Without ``measured`` it is taken wherever it is there, so that every process on a machine gives the same bits.

    For inference only: the products that it takes over have no gradient. It is empty where there is nothing to gain.
    """
    return _ByOneDNN() if device.type == "cpu" and (_pays() if measured else _there()) else nullcontext()


class _ByOneDNN(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.linear and not kwargs and _fits(*args):
            return _linear(*args)
        return func(*args, **(kwargs or {}))


def _fits(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> bool:
    """Return whether this is a plain float32 product outside autograd and autocast."""
    plain = (torch.Tensor, torch.nn.Parameter)
    return (
        all(type(t) in plain and t.dtype == torch.float32 and t.device.type == "cpu" for t in (rows, weight))
        and (bias is None or (type(bias) in plain and bias.dtype == torch.float32))
        and rows.ndim > 1
        and rows.numel() > 0
        and not torch.is_grad_enabled()
        and not torch.is_autocast_enabled("cpu")
    )


def _linear(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    product: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return product


@cache
def _there() -> bool:
    """Return whether oneDNN is there and gives the same."""
    there = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not (there and hasattr(torch.ops.mkldnn, "_linear_pointwise")):
        return False
    with torch.inference_mode(), torch.autocast("cpu", enabled=False):
        try:
            return torch.allclose(_linear(*_sample()), F.linear(*_sample()), atol=1e-3)
        except (RuntimeError, TypeError):  # another torch, where it takes other arguments
            return False


@cache
def _pays() -> bool:
    """Return whether oneDNN is there and was the faster one just now; measured once a process."""
    if not _there():
        return False
    with torch.inference_mode(), torch.autocast("cpu", enabled=False):
        usual, other = (_seconds(way, *_sample()) for way in (F.linear, _linear))
    return usual > WORTH * other


def _sample() -> list[Tensor]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, generator=draw) for shape in ((512, 384), (384, 384), (384,))]


def _seconds(way: Callable[..., Tensor], *arguments: Tensor) -> float:
    """Return the shortest of ten calls, after one to warm up."""
    shortest = float("inf")
    for attempt in range(11):
        started = time.perf_counter()
        way(*arguments)
        if attempt:
            shortest = min(shortest, time.perf_counter() - started)
    return shortest
