"""BERT-flow: an invertible map, learned without labels, that makes the embeddings normally distributed.

A step scales and shifts each dimension (actnorm), reverses their order, and adds a small network's function of the
first half to the second half (additive coupling). After the last step of a level half of the dimensions are finished,
and the others pass to the next level. With u = f(x), training minimises the bits per dimension of the embeddings,

    -( log N(u; 0, I) + log |det df/dx| ) / (d log 2)

Source: Li et al. 2020, "On the Sentence Embeddings from Pre-trained Language Models", and its code: Glow (Kingma and
    Dhariwal 2018) of 3 levels and depth 3, width 32, with a fixed reversal as "1x1 convolution" and standard normal
    priors; Adam 1e-3 with decay 0.01 and no warm-up, gradients clipped at norm 1, batch 32, one epoch.
Differs: embeddings are computed beforehand, so without dropout. Actnorm is initialised from up to 1,024 embeddings
    instead of one batch of 32. Adam uses bias correction. If a width is odd, the second half is the larger one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor, nn

from samesense.errors import ConfigError, ModelError
from samesense.types import Embeddings

LEVELS = 3
DEPTH = 3
WIDTH = 32

LOG_SCALE = 3.0
"""Log-scales are stored divided by this, so that they learn faster."""

FIRST = 1024
"""Embeddings from which actnorm's scale and shift are initialised."""

BLOCK = 4096
"""Rows mapped at once."""


class ActNorm(nn.Module):
    """Scale and shift of each dimension."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.shift = nn.Parameter(torch.zeros(dim))
        self.log_scale = nn.Parameter(torch.zeros(dim))

    def forward(self, x: Tensor, starting: bool) -> tuple[Tensor, Tensor]:
        """Return the scaled rows ``(n, dim)`` and the log-determinant, the same for all of them."""
        if starting:  # from now on these rows have mean 0 and variance 1
            with torch.no_grad():
                self.shift.copy_(-x.mean(dim=0))
                self.log_scale.copy_(-torch.log(x.std(dim=0, correction=0) + 1e-6) / LOG_SCALE)
        logs = self.log_scale * LOG_SCALE
        return (x + self.shift) * logs.exp(), logs.sum()


class Shift(nn.Module):
    """The network of a coupling: two hidden layers with actnorm, and a last layer that starts at zero."""

    def __init__(self, inputs: int, outputs: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        sizes = (inputs, width)
        self.weights = nn.ParameterList(nn.Parameter(0.05 * torch.randn(n, width, generator=generator)) for n in sizes)
        self.norms = nn.ModuleList(ActNorm(width) for _ in sizes)
        # zeros make the coupling the identity at the start, as in Glow
        self.last = nn.Parameter(torch.zeros(width, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.log_scale = nn.Parameter(torch.zeros(outputs))

    def forward(self, x: Tensor, starting: bool) -> Tensor:
        """Return the shift of the second half, ``(n, outputs)``."""
        for weight, norm in zip(self.weights, self.norms, strict=True):
            x = norm(x @ weight, starting)[0].relu()
        return (x @ self.last + self.bias) * (self.log_scale * LOG_SCALE).exp()


class Step(nn.Module):
    """Actnorm, reversal, and additive coupling of ``dim`` dimensions."""

    def __init__(self, dim: int, width: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first_size = dim // 2
        self.norm = ActNorm(dim)
        self.shift = Shift(self.first_size, dim - self.first_size, width, generator)

    def forward(self, x: Tensor, starting: bool) -> tuple[Tensor, Tensor]:
        """Return the mapped rows and the log-determinant of actnorm, as the other operations preserve volume."""
        x, log_det = self.norm(x, starting)
        x = x.flip(1)
        first_half = x[:, : self.first_size]
        second_half = x[:, self.first_size :]
        return torch.cat([first_half, second_half + self.shift(first_half, starting)], dim=1), log_det


class Flow(nn.Module):
    """The invertible map of ``dim`` dimensions; ConfigError if they cannot be halved at every level."""

    def __init__(
        self, dim: int, *, levels: int = LEVELS, depth: int = DEPTH, width: int = WIDTH, seed: int = 0
    ) -> None:
        super().__init__()
        if dim < 2**levels:
            raise ConfigError(f"A flow of {levels} levels needs at least {2**levels} dimensions; received {dim}.")
        self.dim = dim
        self.depth = depth
        self.widths = [dim // 2**level for level in range(levels)]
        generator = torch.Generator().manual_seed(seed)
        self.steps = nn.ModuleList(Step(level_dim, width, generator) for level_dim in self.widths for _ in range(depth))

    def forward(self, x: Tensor, starting: bool = False) -> tuple[Tensor, Tensor]:
        """Return the mapped rows ``(n, dim)`` and the log-determinant, a scalar that is the same for all rows.

        The dimensions that were finished first come first.
        """
        finished = []
        log_det = x.new_zeros(())
        for level, level_dim in enumerate(self.widths):
            finished.append(x[:, level_dim:])
            x = x[:, :level_dim]
            for step in self.steps[level * self.depth : (level + 1) * self.depth]:
                x, added = step(x, starting)
                log_det = log_det + added
        return torch.cat([*finished, x], dim=1), log_det

    def bits(self, x: Tensor) -> Tensor:
        """Return the mean bits per dimension of the rows, a scalar."""
        mapped, log_det = self(x)
        log_normal = -0.5 * (mapped.square().sum(dim=1) + self.dim * math.log(2 * math.pi))
        bits: Tensor = -(log_normal.mean() + log_det) / (self.dim * math.log(2))
        return bits

    @torch.inference_mode()
    def apply_to(self, embeddings: Embeddings) -> Embeddings:
        """Return the mapped rows, float32 ``(n, dim)``."""
        rows = np.asarray(embeddings, dtype=np.float32)
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise ModelError(
                f"This flow was fitted on embeddings of {self.dim} dimensions; received shape {rows.shape}."
            )
        blocks = [self(torch.from_numpy(rows[start : start + BLOCK]))[0] for start in range(0, len(rows), BLOCK)]
        return torch.cat(blocks).numpy() if blocks else rows


def fit_flow(
    embeddings: Embeddings, *, seed: int = 0, epochs: int = 1, batch_size: int = 32, learning_rate: float = 1e-3
) -> Flow:
    """Train a flow on embeddings ``(n, d)`` of unlabelled texts, by Adam with a constant learning rate.

    ``seed`` decides the initial weights and the order of the rows. ConfigError if there are fewer
    than 8 dimensions; ModelError if there are fewer than two embeddings, one is not finite, or training diverges.
    """
    rows = torch.from_numpy(np.array(embeddings, dtype=np.float32))
    if rows.ndim != 2 or len(rows) < 2:
        raise ModelError(f"A flow needs at least two embeddings, one a row; received shape {tuple(rows.shape)}.")
    broken = ~rows.isfinite().all(dim=1)
    if bool(broken.any()):
        raise ModelError(f"A flow needs finite embeddings; row {int(broken.int().argmax())} holds a NaN or infinity.")
    flow = Flow(rows.shape[1], seed=seed)
    order = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        flow(rows[torch.randperm(len(rows), generator=order)[:FIRST]], starting=True)
    adam = torch.optim.AdamW(flow.parameters(), lr=learning_rate, weight_decay=0.01, eps=1e-6)
    for batch in _batches(len(rows), batch_size, epochs, order):
        bits = flow.bits(rows[batch])
        if not bool(bits.isfinite()):
            raise ModelError("The flow diverged: its bits per dimension are not finite. Lower the learning rate.")
        adam.zero_grad()
        bits.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(flow.parameters(), 1.0)
        adam.step()
    return flow.eval()


def _batches(n: int, size: int, epochs: int, generator: torch.Generator) -> Iterator[Tensor]:
    for _ in range(epochs):
        yield from torch.randperm(n, generator=generator).split(size)  # type: ignore[no-untyped-call]
