"""AdamW that skips the word embeddings of words that have not occurred yet.

A batch contains some hundred words of a vocabulary of tens or hundreds of thousands. The gradients of all others are
zero, and so are their moments until a word first occurs, yet a dense AdamW reads and writes them in every step.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from samesense.execution.ranks import world_size

if TYPE_CHECKING:
    from transformers import Trainer

_MIN_ROWS = 2048
"""Minimum number of rows of an embedding for sparse gradients."""

_GROWTH = 1.5
"""Factor by which the moments grow when they are full."""

_CHUNK_ROWS = 512
"""Rows updated at a time, so that temporary tensors stay in the processor's cache."""


class RowAdamW(torch.optim.AdamW):
    """torch's fused AdamW, with sparse gradients for embeddings ``(rows, dim)``.

    A row gets moments in the first step in which it has a gradient, and is updated in every step from then on. If
    ``grad_scale`` is set, gradients are divided by it while the weights are updated, for one step.

    Source: Loshchilov and Hutter 2019, as torch computes it; with a weight decay of 0 the weights are the same.
    Differs: rows without any gradient so far do not decay either.
    """

    grad_scale: Tensor | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the weights by their gradients."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        sparse = []
        for group in self.param_groups:
            for weight in group["params"]:
                # taken out, so that torch's step updates the dense weights only
                if weight.grad is not None and weight.grad.is_sparse:
                    sparse.append((weight, weight.grad, group))
                    weight.grad = None
        try:
            super().step()
            for weight, gradient, group in sparse:
                self._step_rows(weight, gradient.coalesce(), group)
        finally:
            self.grad_scale = None
            for weight, gradient, _ in sparse:
                weight.grad = gradient
        return loss

    def _step_rows(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[weight]
        if "rows" not in state:
            state["step"] = torch.zeros(())
            state["rows"] = torch.empty(0, dtype=torch.int64)
            state["exp_avg"] = weight.new_empty(0, weight.shape[1])
            state["exp_avg_sq"] = weight.new_empty(0, weight.shape[1])
        slots, order = self._slots_of(weight, state, gradient.indices()[0]).sort()
        values = gradient.values()[order]
        rows = state["rows"].long()  # loading a state casts it to the weight's dtype
        state["step"].add_(1)
        done = 0  # rows of the gradient that are used up
        for start in range(0, len(rows), _CHUNK_ROWS):
            chunk = rows[start : start + _CHUNK_ROWS]
            chunk_slots = slice(start, start + len(chunk))
            end = int(torch.searchsorted(slots, start + len(chunk)))
            # rows with moments but without a gradient in this step are updated with a gradient of 0
            dense = values.new_zeros(len(chunk), weight.shape[1])
            dense.index_copy_(0, slots[done:end] - start, values[done:end])
            weights = weight.index_select(0, chunk)
            torch._fused_adamw_(
                [weights],
                [dense],
                [state["exp_avg"][chunk_slots]],
                [state["exp_avg_sq"][chunk_slots]],
                [],
                [state["step"]],
                lr=float(group["lr"]),
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                amsgrad=False,
                maximize=group["maximize"],
                grad_scale=self.grad_scale,
            )
            weight.index_copy_(0, chunk, weights)
            done = end

    def _slots_of(self, weight: Tensor, state: dict[str, Any], rows: Tensor) -> Tensor:
        """Return the slots of rows among the moments; rows without moments are appended."""
        slots = torch.full((len(weight),), -1)  # -1: no moments yet
        slots[state["rows"].long()] = torch.arange(len(state["rows"]))
        new = rows[slots[rows] < 0]
        if len(new):
            n = len(state["rows"])
            slots[new] = torch.arange(n, n + len(new))
            state["rows"] = torch.cat([state["rows"].long(), new])
            for name in ("exp_avg", "exp_avg_sq"):
                state[name] = _grown(state[name], n, n + len(new), len(weight))
        return slots[rows]


def _grown(moments: Tensor, used: int, needed: int, limit: int) -> Tensor:
    """Return moments with at least ``needed`` rows; those behind the first ``used`` are zero."""
    if needed <= len(moments):
        return moments
    grown = moments.new_zeros(min(limit, max(needed, int(_GROWTH * needed))), moments.shape[1])
    grown[:used] = moments[:used]
    return grown


@contextmanager
def sparse_embeddings(loss: nn.Module, allowed: bool) -> Iterator[bool]:
    """Switch large embeddings below a loss to sparse gradients, in one process on a CPU; yield whether there are any.

    Excluded are embeddings that are tied to another layer, such as a masked-LM head, as their gradient is dense, and
    those in half precision, as a loaded optimiser state, row numbers included, takes on the dtype of the weight.
    """
    if not allowed or world_size() > 1:
        yield False
        return
    # a tied weight occurs in several modules
    uses = Counter(id(parameter) for module in loss.modules() for parameter in module._parameters.values())
    embeddings = [
        module
        for module in loss.modules()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag)
        and len(module.weight) >= _MIN_ROWS
        and module.weight.requires_grad
        and module.weight.device.type == "cpu"
        and module.weight.dtype == torch.float32
        and uses[id(module.weight)] == 1
        and not module.sparse
    ]
    for module in embeddings:
        module.sparse = True
    try:
        yield bool(embeddings)
    finally:
        for module in embeddings:
            module.sparse = False


def clip_all(trainer: Trainer, loss: nn.Module, check_norm: Callable[[float], bool] = math.isfinite) -> None:
    """Make a trainer clip the gradients of the model and of the loss's own weights, such as a head, together.

    ``check_norm`` gets the norm of each step, and returns whether the step may change weights. It is not called with
    float16, whose scaler skips steps by itself.
    """
    weights = list(loss.parameters())  # listed once, not in every step

    def clip(parameters: Iterable[Tensor], max_norm: float, norm_type: float = 2) -> Tensor:
        trainer.accelerator.unscale_gradients()  # of float16
        optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)  # accelerate wraps it
        norm = clip_gradients(weights, max_norm, optimizer)
        if trainer.accelerator.scaler is None and not check_norm(float(norm)):
            # Without a gradient, the optimiser passes over a weight.
            for weight in weights:
                weight.grad = None
        return norm

    trainer.accelerator.clip_grad_norm_ = clip


def clip_gradients(weights: Iterable[Tensor], max_norm: float, optimizer: Any) -> Tensor:
    """Clip gradients, sparse ones too, to a maximum norm, and return their norm before.

    :class:`RowAdamW` scales them itself in its next step, which saves a pass through memory.

    Source: ``torch.nn.utils.clip_grad_norm_``, which does not support sparse gradients.
    """
    gradients = [_gradient_values(weight, weight.grad) for weight in weights if weight.grad is not None]
    norm: Tensor = nn.utils.get_total_norm(gradients)
    factor = max_norm / (norm + 1e-6)
    clipped = not bool(factor >= 1)  # also if the norm is NaN
    if isinstance(optimizer, RowAdamW):
        optimizer.grad_scale = factor.reciprocal() if clipped else None
    elif clipped:
        torch._foreach_mul_(gradients, factor)
    return norm


def _gradient_values(weight: Tensor, gradient: Tensor) -> Tensor:
    if not gradient.is_sparse:
        return gradient
    # Entries of one row are added up first, as the norm of a sum is not that of its parts.
    weight.grad = gradient.coalesce()
    # A view, so that scaling it scales the gradient.
    return weight.grad.values()
