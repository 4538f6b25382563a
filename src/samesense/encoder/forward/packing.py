"""Packing: texts of different lengths are concatenated into a single row without padding.

The token-wise operations of a transformer run over all tokens (in bfloat16 a few more) in one forward; only attention
runs text by text, in groups of similar length. With several padded forwards, the gradient of every weight, word
embeddings included, was computed, cast and summed several times per batch.

The layout is that of sentence-transformers for flash attention (``cu_seq_lens_q``), which its pooling reads. The head
of a cross-encoder gets the first token of each pair.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.hooks import RemovableHandle
from transformers import MPNetModel, PreTrainedModel

from samesense.encoder.forward.attention import NAME, Group, in_float32
from samesense.encoder.forward.dropout import use_cheap_dropout, without_dropout
from samesense.encoder.forward.grad_cache import Features, forward
from samesense.encoder.forward.mpnet import MPNetAttention

logger = logging.getLogger(__name__)

_TRIAL_TEXTS = ("a", "some words, more than the one before", "two or three")
"""Texts of three lengths. A model can pack if their embeddings, or scores, are the same packed and padded."""


def pack(features: Features, rows: Tensor, groups: Sequence[tuple[int, int]], offset: int) -> Features:
    """Return ``rows`` of padded features, sorted by descending length, as one row of tokens.

    Args:
        features: tensors ``(texts, tokens)`` with an ``attention_mask``; other values are kept.
        rows: indices of the texts.
        groups: start and end of each range of rows whose attention is computed together.
        offset: id of the first position.
    """
    mask = features["attention_mask"][rows].bool()
    lengths = mask.sum(dim=1)
    ends = lengths.cumsum(0)
    starts = F.pad(ends, (1, 0))
    packed: Features = {
        key: value[rows][mask].unsqueeze(0) if isinstance(value, Tensor) else value
        for key, value in features.items()
        if key != "attention_mask"
    }
    # positions begin at ``offset`` again in every text
    within = torch.arange(int(ends[-1])) - starts[:-1].repeat_interleave(lengths)
    packed["position_ids"] = (within + offset).unsqueeze(0)
    packed["cu_seq_lens_q"] = starts.int()
    sizes = lengths.tolist()
    offsets = starts.tolist()
    packed["packing"] = [Group(sizes[start:end], offsets[start]) for start, end in groups]
    return packed


def round_up_tokens(tokens: int) -> int:
    """Round a number of tokens up to one of 16 steps between two powers of two (from 32 on).

    oneDNN builds new kernels for each new number, which takes 3 ms a step of six layers.
    """
    unit = 1 << max(0, tokens.bit_length() - 5)
    return -(-tokens // unit) * unit


def _add_rounding_tokens(trunk: nn.Module, inputs: tuple[Features, ...]) -> tuple[Features, ...] | None:
    """Pad a packed row with copies of its first token to a rounded number of tokens, under autocast."""
    features = inputs[0]
    if "packing" not in features or not torch.is_autocast_enabled("cpu"):
        return None
    total = features["input_ids"].shape[1]
    added = round_up_tokens(total) - total
    filled = {
        key: torch.cat([value, value[:, :1].expand(1, added)], dim=1)
        for key, value in features.items()
        if isinstance(value, Tensor) and value.shape == (1, total)
    }
    return {**features, **filled}, *inputs[1:]


def _drop_rounding_tokens(trunk: nn.Module, inputs: tuple[Features, ...], output: Features) -> Features:
    """Drop the tokens that :func:`_add_rounding_tokens` has added."""
    if "packing" not in output:
        return output
    total = int(output["cu_seq_lens_q"][-1])
    filled = output["input_ids"].shape[1]
    if total == filled:
        return output

    def cut(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(map(cut, value))
        if isinstance(value, Tensor) and value.shape[:2] == (1, filled):
            return value[:, :total]
        return value

    return {key: cut(value) for key, value in output.items()}


def _norm_in_float32(norm: nn.Module, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Compute a layer norm in float32 under autocast: in bfloat16 torch sums its weights' gradients in bfloat16.

    Over 2,600 tokens those gradients were off by 20 to 50 % (all-MiniLM-L6-v2, the last layer).
    """
    if not torch.is_autocast_enabled("cpu"):
        return None
    return (in_float32(inputs[0]), *inputs[1:])


def _output_in_autocast(norm: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> Tensor | None:
    """Cast the output of a layer norm to autocast's dtype, so that all operations behind it run in that dtype.

    On a CPU torch leaves additions and layer norms in float32, so that input and output of each product are converted.
    """
    if not torch.is_autocast_enabled("cpu"):
        return None
    return output.to(torch.get_autocast_dtype("cpu"))


def _hook_norms(model: nn.Module) -> list[RemovableHandle]:
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    hooks = []
    for norm in norms:
        hooks += [norm.register_forward_pre_hook(_norm_in_float32), norm.register_forward_hook(_output_in_autocast)]
    return hooks


def _embeddings_in_float32(trunk: nn.Module, inputs: tuple[Features, ...], output: Features) -> Features:
    """Cast token embeddings back to float32, as pooling averages them."""
    if "token_embeddings" in output:
        output["token_embeddings"] = in_float32(output["token_embeddings"])
    return output


def takes_packed_texts(model: nn.Module) -> bool:
    """Return whether a model, perhaps wrapped for DDP, takes packed texts at the moment."""
    trunk = _trunk(getattr(model, "module", model))
    return trunk is not None and _attention_of(trunk.model).is_packed


def _trunk(model: nn.Module) -> Transformer | None:
    first = None
    if isinstance(model, SentenceTransformer | CrossEncoder) and len(model):
        first = model[0]
    if isinstance(first, Transformer):
        return first
    return None


def first_position(model: nn.Module) -> int:
    """Return the position id of the first token: in RoBERTa and its relatives the one after that of padding."""
    for module in model.modules():
        padding = getattr(module, "padding_idx", None)
        if isinstance(padding, int) and isinstance(getattr(module, "position_embeddings", None), nn.Embedding):
            return padding + 1
    return 0


@contextmanager
def packing(model: SentenceTransformer | CrossEncoder) -> Iterator[None]:
    """Let a model on a CPU take packed texts, if they give the same embeddings or scores as padded ones."""
    trunk = _trunk(model)
    if trunk is None or trunk.model.device.type != "cpu" or not _attention_of(trunk.model).can_pack:
        yield
        return
    attention = _attention_of(trunk.model)
    # the transformer of sentence-transformers passes only these arguments on to its model
    arguments = trunk.model_forward_params
    if arguments is not None:  # None lets all arguments through
        trunk.model_forward_params = arguments | {"packing"}
    attention.pack()
    hooks = [trunk.register_forward_pre_hook(_add_rounding_tokens), trunk.register_forward_hook(_drop_rounding_tokens)]
    hooks += [*_hook_norms(trunk), trunk.register_forward_hook(_embeddings_in_float32)]
    if isinstance(model, CrossEncoder):  # a bi-encoder's pooling reads packed texts itself
        hooks.append(trunk.model.base_model.register_forward_hook(_first_tokens, with_kwargs=True))
    try:
        if not _agrees(model):
            logger.debug("texts are padded: this model does not take packed ones")
            attention.unpack()
        yield
    finally:
        attention.unpack()
        trunk.model_forward_params = arguments
        for hook in hooks:
            hook.remove()


class _ChosenAttention:
    """The attention of a transformer that lets its implementation be chosen; see :class:`MPNetAttention`."""

    def __init__(self, model: PreTrainedModel) -> None:
        self._model: Any = model

    @property
    def is_packed(self) -> bool:
        """Whether packed texts are taken at the moment."""
        return bool(self._model.config._attn_implementation == NAME)

    @property
    def can_pack(self) -> bool:
        """Whether :meth:`pack` may be called."""
        chosen = getattr(self._model.config, "_attn_implementation", None)
        return chosen == "sdpa" and bool(self._model.is_backend_compatible())

    def pack(self) -> None:
        """Take packed texts as well as padded ones."""
        self._model.set_attn_implementation(NAME)

    def unpack(self) -> None:
        """Undo :meth:`pack`."""
        self._model.set_attn_implementation("sdpa")


def _attention_of(model: PreTrainedModel) -> _ChosenAttention | MPNetAttention:
    if isinstance(model.base_model, MPNetModel):
        return MPNetAttention(model.base_model)
    return _ChosenAttention(model)


@contextmanager
def cheap_dropout_on_cpu(model: PreTrainedModel) -> Iterator[None]:
    """Use cheap dropout, in attention too, in a transformer that trains on padded texts on a CPU."""
    if model.device.type != "cpu":
        yield
        return
    use_cheap_dropout(model)
    attention = model.config._attn_implementation
    if attention == "sdpa":
        model.set_attn_implementation(NAME)
    try:
        yield
    finally:
        model.set_attn_implementation(attention)


def _first_tokens(base: Any, inputs: tuple[Any, ...], options: dict[str, Any], output: Any) -> Any:
    """Return a transformer's output for packed texts with the first token of each text only, which heads read."""
    if options.get("packing") is None:
        return output
    output.last_hidden_state = output.last_hidden_state[0, options["cu_seq_lens_q"][:-1].long()].unsqueeze(1)
    if getattr(base, "pooler", None) is not None:
        output.pooler_output = base.pooler(output.last_hidden_state)
    return output


@torch.no_grad()
def _agrees(model: SentenceTransformer | CrossEncoder) -> bool:
    """Return whether packed texts get the same embeddings or scores as padded ones."""
    try:
        # Under autocast the two would differ by the rounding of bfloat16.
        with without_dropout(model), torch.autocast("cpu", enabled=False):
            pairs = isinstance(model, CrossEncoder)
            features = model.preprocess(
                [(text, _TRIAL_TEXTS[-1]) for text in _TRIAL_TEXTS] if pairs else list(_TRIAL_TEXTS)
            )
            order = features["attention_mask"].sum(dim=1).argsort(descending=True)
            packed = forward(model, pack(features, order, [(0, 1), (1, len(_TRIAL_TEXTS))], first_position(model)))
            return torch.allclose(packed, forward(model, features)[order], rtol=1e-3, atol=1e-4)
    # a model's own code may fail in any of these ways on packed input; NotImplementedError is a RuntimeError
    except (AttributeError, KeyError, TypeError, ValueError, IndexError, RuntimeError):
        return False
