"""AdamW that leaves the word embeddings alone which no text has held.

A batch holds some hundred words of a vocabulary of tens or hundreds of thousands. Gradients of all others are zero, and
so are their moments until they are met first: a dense AdamW reads and writes them in every step, for nothing.
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

_ROWS = 2048
"""Rows below which embeddings are trained as any other weight."""

_GROWTH = 1.5

_CHUNK = 512
"""Rows that are updated at a time, so that what is made for it stays in the processor's cache."""


class RowAdamW(torch.optim.AdamW):
    """torch's fused AdamW, with sparse gradients for embeddings ``(rows, dim)``.

    A row has moments from the first step on in which it has a gradient, and is then updated in every step. Gradients
    are divided by ``grad_scale``, where that is set, in the pass that updates the weights; it holds for one step.

    Source: Loshchilov and Hutter 2019, as torch computes it; with a weight decay of 0 the weights are the same.
    Differs: rows that no text has held yet do not decay either.
    """

    grad_scale: Tensor | None = None

    @torch.no_grad()
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the weights by their gradients."""
        found = None
        if closure is not None:
            with torch.enable_grad():
                found = closure()
        sparse = []
        for group in self.param_groups:
            for weight in group["params"]:
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
        return found

    def _step_rows(self, weight: Tensor, gradient: Tensor, group: dict[str, Any]) -> None:
        state = self.state[weight]
        if "rows" not in state:
            state["step"] = torch.zeros(())
            state["rows"] = torch.empty(0, dtype=torch.int64)
            state["exp_avg"] = state["exp_avg_sq"] = weight.new_empty(0, weight.shape[1])
        places, order = self._places(weight, state, gradient.indices()[0]).sort()
        values, rows = gradient.values()[order], state["rows"].long()  # a loaded state has them as the weight's numbers
        state["step"].add_(1)
        done = 0
        for start in range(0, len(rows), _CHUNK):
            own = rows[start : start + _CHUNK]
            part, end = slice(start, start + len(own)), int(torch.searchsorted(places, start + len(own)))
            dense = values.new_zeros(len(own), weight.shape[1])
            dense.index_copy_(0, places[done:end] - start, values[done:end])
            weights = weight.index_select(0, own)
            torch._fused_adamw_(
                [weights],
                [dense],
                [state["exp_avg"][part]],
                [state["exp_avg_sq"][part]],
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
            weight.index_copy_(0, own, weights)
            done = end

    def _places(self, weight: Tensor, state: dict[str, Any], met: Tensor) -> Tensor:
        """Return the numbers of rows among those with moments; rows that are new are put behind."""
        slots = torch.full((len(weight),), -1)
        slots[state["rows"].long()] = torch.arange(len(state["rows"]))
        new = met[slots[met] < 0]
        if len(new):
            n = len(state["rows"])
            slots[new] = torch.arange(n, n + len(new))
            state["rows"] = torch.cat([state["rows"].long(), new])
            for name in ("exp_avg", "exp_avg_sq"):
                state[name] = _with_room(state[name], n, n + len(new), len(weight))
        return slots[met]


def _with_room(moments: Tensor, used: int, wanted: int, most: int) -> Tensor:
    """Return moments of at least ``wanted`` rows: zeros behind the first ``used``."""
    if wanted <= len(moments):
        return moments
    larger = moments.new_zeros(min(most, max(wanted, int(_GROWTH * wanted))), moments.shape[1])
    larger[:used] = moments[:used]
    return larger


@contextmanager
def sparse_embeddings(loss: nn.Module, allowed: bool) -> Iterator[bool]:
    """Have large embeddings below a loss give sparse gradients, on one CPU; yields whether any does.

    Not those that another layer shares, such as a head that guesses words: their gradient is dense. Nor those in half
    precision, which the optimiser's state takes on when it is loaded, row numbers included.
    """
    if not allowed or world_size() > 1:
        yield False
        return
    held = Counter(id(one) for module in loss.modules() for one in module._parameters.values())
    chosen = [
        module
        for module in loss.modules()
        if isinstance(module, nn.Embedding | nn.EmbeddingBag)
        and len(module.weight) >= _ROWS
        and module.weight.requires_grad
        and module.weight.device.type == "cpu"
        and module.weight.dtype == torch.float32
        and held[id(module.weight)] == 1
        and not module.sparse
    ]
    for module in chosen:
        module.sparse = True
    try:
        yield bool(chosen)
    finally:
        for module in chosen:
            module.sparse = False


def clip_all(trainer: Trainer, loss: nn.Module, seen: Callable[[float], bool] = math.isfinite) -> None:
    """Have a trainer clip the gradients of the model and of what the loss itself learns, such as a head, together.

    ``seen`` is given the norm of each step, and says whether the step may change weights; with float16, whose scaler
    leaves steps out by itself, it is not asked.
    """
    weights = list(loss.parameters())  # once, not by a walk through all modules in every step

    def clip(parameters: Iterable[Tensor], max_norm: float, norm_type: float = 2) -> Tensor:
        trainer.accelerator.unscale_gradients()  # of float16
        optimizer = getattr(trainer.optimizer, "optimizer", trainer.optimizer)  # accelerate wraps it
        norm = clip_gradients(weights, max_norm, optimizer)
        if trainer.accelerator.scaler is None and not seen(float(norm)):
            for weight in weights:
                weight.grad = None
        return norm

    trainer.accelerator.clip_grad_norm_ = clip


def clip_gradients(weights: Iterable[Tensor], max_norm: float, optimizer: Any) -> Tensor:
    """Scale gradients, sparse ones too, down to one norm, and return the norm that they had.

    :class:`RowAdamW` scales them itself in its next step, which saves a pass through memory.

    Source: ``torch.nn.utils.clip_grad_norm_``, which takes no sparse ones.
    """
    found = [_values(weight, weight.grad) for weight in weights if weight.grad is not None]
    norm: Tensor = nn.utils.get_total_norm(found)
    factor = max_norm / (norm + 1e-6)
    clipped = not bool(factor >= 1)  # also where it is not a number, which then shows
    if isinstance(optimizer, RowAdamW):
        optimizer.grad_scale = factor.reciprocal() if clipped else None
    elif clipped:
        torch._foreach_mul_(found, factor)
    return norm


def _values(weight: Tensor, gradient: Tensor) -> Tensor:
    if not gradient.is_sparse:
        return gradient
    weight.grad = gradient.coalesce()
    return weight.grad.values()
