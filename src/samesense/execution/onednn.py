"""Float32 matrix products on a CPU by oneDNN, where that is faster than torch's default.

torch multiplies float32 matrices by MKL, whose kernels reach half of the speed that processors of other makers than
Intel allow. oneDNN ships with torch and generates kernels for the present processor; torch uses it for bfloat16 only.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from samesense.execution.timing import seconds_taken

WORTH = 1.2
"""Speed-up from which on oneDNN is used."""


def fast_linear(device: torch.device, *, measured: bool = True) -> AbstractContextManager[Any]:
    """Return the context in which float32 linear layers run by oneDNN, if that is faster on this device.

    Without ``measured`` oneDNN is used wherever it is available, so that every process on a machine gives the same
    bits.

    For inference only: these products have no gradient. The context does nothing where there is nothing to gain.
    """
    if device.type != "cpu":
        return nullcontext()
    use = _is_faster() if measured else _is_available()
    if use:
        return _ByOneDNN()
    return nullcontext()


class _ByOneDNN(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is F.linear and not kwargs and _fits(*args):
            return _linear(*args)
        return func(*args, **(kwargs or {}))


def _fits(rows: Tensor, weight: Tensor, bias: Tensor | None = None) -> bool:
    """Return whether this is a plain float32 product outside autograd and autocast."""
    # Exact types: subclasses, such as quantized tensors, may define the product differently.
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
    # a private operator of torch, whose existence and result _is_available() checks
    product: Tensor = torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return product


@cache
def _is_available() -> bool:
    """Return whether oneDNN is available and gives the same result."""
    is_available = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    if not (is_available and hasattr(torch.ops.mkldnn, "_linear_pointwise")):
        return False
    with torch.inference_mode(), torch.autocast("cpu", enabled=False):
        try:
            return torch.allclose(_linear(*_sample()), F.linear(*_sample()), atol=1e-3)
        except (RuntimeError, TypeError):  # a version of torch with another signature
            return False


@cache
def _is_faster() -> bool:
    """Return whether oneDNN is available and faster; measured once per process."""
    if not _is_available():
        return False
    # Autocast would compute F.linear in bfloat16, which is not what is compared.
    with torch.inference_mode(), torch.autocast("cpu", enabled=False):
        default_seconds = _seconds(F.linear, *_sample())
        onednn_seconds = _seconds(_linear, *_sample())
    return default_seconds > WORTH * onednn_seconds


def _sample() -> list[Tensor]:
    draw = torch.Generator().manual_seed(0)
    return [torch.randn(*shape, generator=draw) for shape in ((512, 384), (384, 384), (384,))]


def _seconds(way: Callable[..., Tensor], *arguments: Tensor) -> float:
    """Return the shortest of ten calls, after one to warm up."""
    way(*arguments)
    return min(seconds_taken(lambda: way(*arguments)) for _ in range(10))
