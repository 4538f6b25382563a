"""Frozen lower layers: their output for a text is computed once, and read in every later step and evaluation.

Where a text comes back, in each epoch and at each evaluation on dev, only the layers above them are run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any, NamedTuple, cast

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.util import batch_to_device
from torch import Tensor, nn

from samesense.encoder.forward.dropout import without_dropout
from samesense.encoder.forward.grad_cache import used_parameters
from samesense.encoder.layers import layer_stack
from samesense.errors import ConfigError, ModelError

STORE_BYTES = 1 << 30
"""Maximum size of the kept output. Texts beyond it are run through the frozen layers each time."""


@contextmanager
def frozen_layers(model: SentenceTransformer | CrossEncoder, count: int | None) -> Iterator[None]:
    """Freeze the word embeddings and the first ``count`` layers of a model for a block; ``None`` freezes nothing.

    Frozen layers have no dropout, as their output is computed once a text. ConfigError as by :func:`check_freezable`;
    ModelError if the transformer does not run its layers one after the other.
    """
    if count is None:
        yield
        return
    check_freezable(model, count)
    base: Any = model[0].model.base_model
    frozen = _FrozenPart(base, layer_stack(base, base.config.num_hidden_layers), count)
    with ExitStack() as undo:
        undo.enter_context(frozen.replaced())
        for weight in frozen.find_weights(model):
            weight.requires_grad_(False)
            undo.callback(weight.requires_grad_, True)
        yield


def check_freezable(model: SentenceTransformer | CrossEncoder, count: int | None) -> None:
    """Raise ConfigError unless the first ``count`` layers of a model can be frozen; ``None`` freezes nothing."""
    if count is None:
        return
    if not isinstance(model[0], Transformer):
        raise ConfigError(
            f"`freeze_layers` freezes layers of a transformer, and this model begins with {type(model[0]).__name__}."
        )
    config: Any = model[0].model.base_model.config
    depth = config.num_hidden_layers
    if not 1 <= count < depth:
        raise ConfigError(
            f"`freeze_layers` leaves at least one of the {depth} layers to train, so it is at most {depth - 1}; "
            f"received {count}."
        )
    if config.output_hidden_states:
        raise ConfigError(
            "`freeze_layers` needs a pooling of the last layer, and that of this model reads several. Choose another "
            "`pooling`, such as mean, or leave freeze_layers out."
        )


class _Texts(NamedTuple):
    """The texts of a batch and where their tokens are.

    Attributes:
        keys: what tells the input of each text from that of every other.
        lengths: tokens of each text.
        positions: ``(rows, width)``, true at the tokens of the texts.
    """

    keys: list[bytes]
    lengths: list[int]
    positions: Tensor


class _LayersDone(Exception):  # noqa: N818 - no error: it ends a forward early
    """A forward has passed the frozen layers."""

    def __init__(self, states: Tensor) -> None:
        self.states = states


class _FrozenPart:
    """The word embeddings and the first layers of a transformer.

    A forward of the transformer first gets the states behind the frozen layers, from the store or by a forward that
    ends there. Then these layers compute nothing, and the last of them returns those states.
    """

    def __init__(self, base: Any, stack: nn.ModuleList, count: int) -> None:
        self._base = base
        self._layers: list[Any] = list(stack[:count])
        self._next_layer: Any = stack[count]
        self._store: dict[bytes, Tensor] = {}
        self._bytes = 0
        self._running = False  # whether the frozen layers compute
        self._returns_tuples = False
        self._states: Tensor | None = None

    @contextmanager
    def replaced(self) -> Iterator[None]:
        """Replace the forward of the frozen layers for a block."""
        # Not by hooks: sentence-transformers calls the transformer's forward itself, which runs none.
        modules = (self._base, *self._layers)
        outer_forwards = [vars(module).get("forward") for module in modules]  # packing has replaced that of MPNet
        self._base.forward = partial(self._forward, self._base.forward)
        for layer in self._layers:
            layer.forward = partial(self._layer_output, layer, layer.forward)
        hook = self._next_layer.register_forward_pre_hook(self._end_forward, with_kwargs=True)
        try:
            yield
        finally:
            hook.remove()
            for module, outer_forward in zip(modules, outer_forwards, strict=True):
                del module.forward  # uncovers that of its class
                if outer_forward is not None:
                    module.forward = outer_forward

    def find_weights(self, model: SentenceTransformer | CrossEncoder) -> set[Tensor]:
        """Return the trainable weights that the states behind the frozen layers depend on."""
        features = model.preprocess([("a", "a")] if isinstance(model, CrossEncoder) else ["a"])
        with torch.enable_grad():
            states = self._run(partial(model, batch_to_device(features, model.device)))
        return {weight for weight in used_parameters(states) if weight.requires_grad}

    def _run(self, forward: Callable[[], Any]) -> Tensor:
        """Run the frozen layers by a forward that ends behind them, and return the states there."""
        self._running = True
        try:
            with without_dropout(self._base):
                forward()
        except _LayersDone as done:
            return done.states
        finally:
            self._running = False
        raise ModelError("The transformer does not run its layers one after the other, so none can be frozen.")

    def _end_forward(self, layer: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._running:
            raise _LayersDone(args[0] if args else kwargs["hidden_states"])

    def _layer_output(
        self, layer: nn.Module, forward: Callable[..., Any], hidden_states: Tensor, *args: Any, **kwargs: Any
    ) -> Any:
        """Return the output of a frozen layer: computed, passed on, or the states behind all of them."""
        if self._running:
            output = forward(hidden_states, *args, **kwargs)
            self._returns_tuples = isinstance(output, tuple)
            return output
        if layer is self._layers[-1]:
            hidden_states = cast("Tensor", self._states)
        if self._returns_tuples:
            return (hidden_states,)
        return hidden_states

    def _forward(self, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run the transformer; what it returns is that of its own forward."""
        if not self._running:
            self._states = self._states_behind(partial(forward, *args, **kwargs), *args, **kwargs)
        return forward(*args, **kwargs)

    def _states_behind(self, forward: Callable[[], Any], input_ids: Tensor, **inputs: Any) -> Tensor:
        """Return the states behind the frozen layers for an input."""
        texts = _find_texts(input_ids, inputs)
        if all(key in self._store for key in texts.keys):
            return self._assemble(texts)
        # Not under inference_mode, whose tensors a later step could not train on.
        with torch.inference_mode(False), torch.no_grad():
            states = self._run(forward)
            self._keep(texts, states)
        return states

    def _assemble(self, texts: _Texts) -> Tensor:
        """Return the kept states at the positions of the texts, and 0 at all others."""
        rows = torch.cat([self._store[key] for key in texts.keys])
        states = rows.new_zeros(*texts.positions.shape, rows.shape[1])
        states[texts.positions] = rows
        return states

    def _keep(self, texts: _Texts, states: Tensor) -> None:
        """Keep the states of each text, as long as there is room."""
        pieces = torch.split(states[texts.positions], texts.lengths)
        for key, piece in zip(texts.keys, pieces, strict=True):
            if key in self._store or self._bytes + piece.nbytes > STORE_BYTES:
                continue
            self._store[key] = piece.clone()
            self._bytes += piece.nbytes


def _find_texts(ids: Tensor, inputs: Mapping[str, Any]) -> _Texts:
    """Return the texts of a batch: of packed texts one behind the other in one row, of others one in each row."""
    if "packing" in inputs:
        starts = inputs["cu_seq_lens_q"]
        # A packed row may end with tokens of no text, for a number of tokens that is fast.
        positions = (torch.arange(ids.shape[1]) < int(starts[-1])).unsqueeze(0)
        lengths = starts.diff().tolist()
    else:
        mask = inputs.get("attention_mask")
        positions = torch.ones_like(ids, dtype=torch.bool)
        if mask is not None:
            positions = mask.bool()
        lengths = positions.sum(dim=1).tolist()
    columns = [ids[positions]]
    if inputs.get("token_type_ids") is not None:
        columns.append(inputs["token_type_ids"][positions])
    # The two precisions of a run, that of training and that of dev, give different states.
    device = ids.device.type
    precision = str(torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None).encode()
    tokens = torch.stack(columns, dim=1).cpu()
    keys = [precision + piece.numpy().tobytes() for piece in torch.split(tokens, lengths)]
    return _Texts(keys, lengths, positions)
