"""A batch in parts, of which only the embeddings are kept: gradient caching for any loss.

A first pass without a graph gives the embeddings of every part; when their gradient arrives, the parts are computed
again, one after another and each with the random state it had, and their gradients are added up. The peak is that of
one part and one more copy of the gradients, however many parts there are.

Source: Gao et al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup".
Differs: the two passes are the two halves of one autograd function of the parameters. A loss with parameters of its
    own, several forwards before a backward, loss scaling and DDP's hooks (one gradient a parameter) need nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.parallel import DistributedDataParallel
from torch.utils.checkpoint import get_device_states, set_device_states

from samesense.errors import ModelError

Features = dict[str, Any]


def forward(model: nn.Module, features: Features) -> Tensor:
    """Return the ``(rows, dim)`` embeddings of one part; a cross-encoder's logits pass for one dimension."""
    answer = model(dict(features))
    embeddings: Tensor = answer["sentence_embedding"] if "sentence_embedding" in answer else answer["scores"]
    return embeddings.view(len(embeddings), -1)


def replayed(model: nn.Module, parts: Sequence[Features]) -> Tensor:
    """Embed the parts one by one, holding the activations of one at a time, also in the backward: ``(rows, dim)``.

    Value and gradient are those of a plain forward of each part. Under DDP the first part keeps its activations: it
    goes through DDP's own forward, which makes the gradients of this step be exchanged. Modules with a state that a
    forward changes, such as batch norm, see every part twice. ModelError under DDP in the
    backward, if a part uses parameters that the first one does not.
    """
    if not torch.is_grad_enabled():
        return torch.cat([forward(model, part) for part in parts])
    if isinstance(model, DistributedDataParallel):
        first = forward(model, parts[0])
        return first if len(parts) == 1 else torch.cat([first, _replay(model.module, parts[1:], _reached(first))])
    return _replay(model, parts, None)


def _replay(model: nn.Module, parts: Sequence[Features], used: set[Tensor] | None) -> Tensor:
    """Embed the parts as a function of the parameters; of those ``used`` only, where they are named.

    DDP takes a parameter that its own forward did not use, such as a pooler's, for done, and must not meet it again.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    inputs = trained if used is None else [p for p in trained if p in used]
    others = [] if used is None else [p for p in trained if p not in used]
    embeddings: Tensor = _Replay.apply(model, parts, others, *inputs)  # type: ignore[no-untyped-call]
    return embeddings


def _reached(output: Tensor) -> set[Tensor]:
    """Return the parameters on which ``output`` depends."""
    found, seen, waiting = set(), set(), [output.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):  # where a gradient is put down
            found.add(node.variable)
        waiting.extend(before for before, _ in node.next_functions)
    return found


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, model: nn.Module, parts: Sequence[Features], others: Sequence[Tensor], *parameters: Tensor
    ) -> Tensor:
        ctx.model, ctx.parts, ctx.others, ctx.parameters, ctx.states = model, parts, others, parameters, []
        device = parameters[0].device.type if parameters else "cpu"
        ctx.autocast = (device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
        embeddings = []
        with _own_casts(*ctx.autocast):
            for part in parts:
                ctx.states.append((torch.get_rng_state(), get_device_states(*part.values())))
                embeddings.append(forward(model, part))
        ctx.sizes = [len(part) for part in embeddings]
        return torch.cat(embeddings)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        sums: list[Tensor | None] = [None] * len(ctx.parameters)
        arriving = torch.split(gradient, ctx.sizes)
        for part, (cpu_state, (devices, device_states)), own_gradient in zip(
            ctx.parts, ctx.states, arriving, strict=True
        ):
            with torch.random.fork_rng(devices), torch.enable_grad(), _own_casts(*ctx.autocast):
                torch.set_rng_state(cpu_state)
                set_device_states(devices, device_states)
                embeddings = forward(ctx.model, part)
            wanted = [*ctx.parameters, *ctx.others]
            found = torch.autograd.grad(embeddings, wanted, own_gradient, allow_unused=True)
            del embeddings
            if any(own is not None for own in found[len(sums) :]):
                raise ModelError(
                    "Under torchrun with a token budget, all parts of a batch must use the same parameters, and one "
                    "uses some that the first does not. Leave out mini_batch_num_tokens."
                )
            for i, own in enumerate(found[: len(sums)]):
                if own is not None:  # added beside it: two parameters may have been given one tensor
                    sums[i] = own if sums[i] is None else sums[i] + own  # type: ignore[operator]
        return (None, None, None, *sums)


def _own_casts(device: str, enabled: bool, dtype: torch.dtype) -> AbstractContextManager[Any]:
    """Autocast as it stood, but without its cache, whose shared cast would add gradients up in half precision."""
    return torch.autocast(device, dtype, enabled=enabled, cache_enabled=False)
