"""Gradient caching for any loss: a batch is embedded in smaller batches, and only their embeddings are kept.

A first pass without a graph computes the embeddings of every small batch. When their gradient arrives, each small batch
is computed again with its former random state, and the gradients are summed. Peak memory is that of one small batch and
one more copy of the gradients, for any number of them.

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
    """Return the embeddings of one batch, ``(rows, dim)``; a cross-encoder's logits count as one dimension."""
    answer = model(dict(features))
    if "sentence_embedding" in answer:
        embeddings: Tensor = answer["sentence_embedding"]
    else:
        embeddings = answer["scores"]
    return embeddings.view(len(embeddings), -1)


def embed_with_cached_gradients(model: nn.Module, batches: Sequence[Features]) -> Tensor:
    """Embed the batches one by one, holding the activations of only one, also in the backward: ``(rows, dim)``.

    Value and gradient are those of a plain forward of each batch. Under DDP the first batch keeps its activations: it
    goes through DDP's own forward, which triggers the exchange of gradients in this step. Modules whose state a forward
    changes, such as batch norm, see every batch twice. ModelError under DDP in the backward, if a batch uses
    parameters that the first one does not.
    """
    if not torch.is_grad_enabled():
        return torch.cat([forward(model, batch) for batch in batches])
    if isinstance(model, DistributedDataParallel):
        first = forward(model, batches[0])  # through DDP's own forward
        if len(batches) == 1:
            return first
        return torch.cat([first, _replay(model.module, batches[1:], used_parameters(first))])
    return _replay(model, batches, None)


def _replay(model: nn.Module, batches: Sequence[Features], used: set[Tensor] | None) -> Tensor:
    """Embed the batches as a function of the parameters, or of the ``used`` ones alone if they are given.

    DDP marks a parameter that its own forward did not use, such as a pooler's, as ready; a gradient that arrives for it
    later is an error.
    """
    trained = [p for p in model.parameters() if p.requires_grad]
    inputs = trained if used is None else [p for p in trained if p in used]
    unused = [] if used is None else [p for p in trained if p not in used]
    embeddings: Tensor = _Replay.apply(model, batches, unused, *inputs)  # type: ignore[no-untyped-call]
    return embeddings


def used_parameters(output: Tensor) -> set[Tensor]:
    """Return the parameters on which ``output`` depends."""
    parameters = set()
    visited = set()
    pending = [output.grad_fn]
    while pending:
        node = pending.pop()
        if node is None or node in visited:
            continue
        visited.add(node)
        if hasattr(node, "variable"):  # a leaf of the graph, which accumulates a gradient
            parameters.add(node.variable)
        pending.extend(next_node for next_node, _ in node.next_functions)
    return parameters


class _Replay(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, model: nn.Module, batches: Sequence[Features], unused: Sequence[Tensor], *parameters: Tensor
    ) -> Tensor:
        ctx.model = model
        ctx.batches = batches
        ctx.unused = unused
        ctx.parameters = parameters
        ctx.states = []
        device = parameters[0].device.type if parameters else "cpu"
        ctx.autocast = (device, torch.is_autocast_enabled(device), torch.get_autocast_dtype(device))
        embeddings = []
        with _autocast_without_cache(*ctx.autocast):
            for batch in batches:
                # the second pass must draw the same dropout masks
                ctx.states.append((torch.get_rng_state(), get_device_states(*batch.values())))
                embeddings.append(forward(model, batch))
        ctx.sizes = [len(rows) for rows in embeddings]
        return torch.cat(embeddings)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        sums: list[Tensor | None] = [None] * len(ctx.parameters)
        gradients_of_batches = torch.split(gradient, ctx.sizes)
        for batch, (cpu_state, (devices, device_states)), own_gradient in zip(
            ctx.batches, ctx.states, gradients_of_batches, strict=True
        ):
            # Forked, so that the second pass does not advance the generators of the run.
            with torch.random.fork_rng(devices), torch.enable_grad(), _autocast_without_cache(*ctx.autocast):
                torch.set_rng_state(cpu_state)
                set_device_states(devices, device_states)
                embeddings = forward(ctx.model, batch)
            parameters = [*ctx.parameters, *ctx.unused]
            gradients = torch.autograd.grad(embeddings, parameters, own_gradient, allow_unused=True)
            # Frees the activations of this batch before the next forward.
            del embeddings
            # DDP has marked these parameters as ready without a gradient
            if any(batch_gradient is not None for batch_gradient in gradients[len(sums) :]):
                raise ModelError(
                    "Under torchrun with a token budget, all parts of a batch must use the same parameters, and one "
                    "uses some that the first does not. Leave out mini_batch_num_tokens."
                )
            for i, batch_gradient in enumerate(gradients[: len(sums)]):
                if batch_gradient is not None:  # not in place: two parameters may share one gradient tensor
                    sums[i] = batch_gradient if sums[i] is None else sums[i] + batch_gradient  # type: ignore[operator]
        return (None, None, None, *sums)


def _autocast_without_cache(device: str, enabled: bool, dtype: torch.dtype) -> AbstractContextManager[Any]:
    """Autocast as in the forward, but without its cache: a shared cast would sum gradients in half precision."""
    return torch.autocast(device, dtype, enabled=enabled, cache_enabled=False)
