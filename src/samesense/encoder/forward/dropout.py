"""Dropout whose mask costs little on a CPU, and none."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache

import torch
from torch import Tensor, nn
from torch.nn import functional as F

LEVELS = 1 << 16
"""Probabilities of dropout are rounded to one of so many."""


def kept(shape: Sequence[int], dropped: int) -> Tensor:
    """Return a mask that is false with a probability of ``dropped / LEVELS``, by 16 random bits each.

    ``dropped`` must be at least 1.
    """
    n = math.prod(shape)
    draws = torch.empty((n + 3) // 4, dtype=torch.int64)
    # random_() over the whole range, so that each of the four 16-bit pieces is uniform
    draws.random_(torch.iinfo(torch.int64).min, None)
    return draws.view(torch.int16)[:n].view(shape) > dropped - LEVELS // 2 - 1


_WHOLE = {2: torch.int16, 4: torch.int32, 8: torch.int64}
"""Whole numbers by their bytes."""


def factors(mask: Tensor, dtype: torch.dtype, value: float = 1.0) -> Tensor:
    """Return ``value`` where a mask is true, and 0 elsewhere.

    Made of its bits: torch's conversion of truth values to numbers with a point is not vectorised (173,000 to bfloat16:
    80 us against 11), and a product with them converts them too.
    """
    whole = _WHOLE[dtype.itemsize]
    return mask.to(whole).mul_(_bits(value, dtype, whole)).view(dtype)


@cache
def _bits(value: float, dtype: torch.dtype, whole: torch.dtype) -> int:
    return int(torch.tensor(value, dtype=dtype).view(whole))


def scale_of(dropped: int) -> float:
    """Return by what the values that dropout keeps are multiplied."""
    return LEVELS / max(1, LEVELS - dropped)


def cheap_dropout(values: Tensor, p: float) -> Tensor:
    """Return values of a CPU with a share ``p`` of them dropped and the rest scaled up.

    Draws 16 random bits a value instead of one whole random number: the distribution of torch's own, with the
    probability rounded to 1/65536, from the same generator (seeds, checkpoints and replays hold); other random numbers.
    About 4 times faster, where drawing the mask is a large part of a training forward.
    """
    dropped = round(p * LEVELS)
    if not 0 < dropped < LEVELS:
        return F.dropout(values, p)
    return values * factors(kept(values.shape, dropped), values.dtype, scale_of(dropped))


class CheapDropout(nn.Dropout):
    """Dropout by :func:`cheap_dropout` in training on a CPU."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 (torch's own name)
        """Return ``input`` with values dropped and the rest scaled up, in training on a CPU; else as torch does."""
        if not self.training or input.device.type != "cpu":
            return super().forward(input)
        return cheap_dropout(input, self.p)


@contextmanager
def in_mode(model: nn.Module, *, training: bool) -> Iterator[None]:
    """Have a model compute as in training or as in use; afterwards each of its modules is again as it was."""
    before = [(module, module.training) for module in model.modules()]  # as loaded, the outermost alone is in training
    model.train(training)
    try:
        yield
    finally:
        for module, was in before:
            module.training = was


def without_dropout(model: nn.Module) -> AbstractContextManager[None]:
    """Have a model compute as in use; afterwards each of its modules is in training again that was."""
    return in_mode(model, training=False)


def use_cheap_dropout(model: nn.Module) -> int:
    """Replace every ``nn.Dropout`` below ``model`` in place, keeping its probability; returns how many."""
    count = 0
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            if type(child) is nn.Dropout:
                setattr(parent, name, CheapDropout(child.p))
                count += 1
    return count
