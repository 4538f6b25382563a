"""Checks that the weights in a model's files are those that its configuration describes: none is silently random.

transformers initializes missing weights at random, ignores unexpected ones, and says so in its log only. The loading
report is taken from two functions of its loader, because ``output_loading_info`` leaves out the base model of adapters.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any

import torch
from torch import Tensor, nn

from samesense.errors import ModelError
from samesense.failures import abridged

logger = logging.getLogger(__name__)

NAMED = 3
"""How many weights of each kind a message names."""


@dataclass
class Difference:
    """Missing, mismatched and unexpected weights of one file.

    Attributes:
        source: folder or hub name.
        model: the model that was loaded from it.
        missing: names of the model's weights that the file lacks; they are initialized at random.
        mismatched: names of weights with another shape in the file, with both shapes; random too.
        unexpected: names in the file that the model has no weight for.
        total: number of the model's weights.
    """

    source: str
    model: Any
    missing: list[str]
    mismatched: dict[str, tuple[tuple[int, ...], tuple[int, ...]]]
    unexpected: list[str]
    total: int

    @property
    def random(self) -> list[str]:
        """Names of the weights that are random."""
        return sorted({*self.missing, *self.mismatched})

    def error(self) -> ModelError:
        """Return the error that names the weights."""
        shapes = [
            f"{name} ({_shape(stored)} in the file, {_shape(needed)} by the configuration)"
            for name, (stored, needed) in sorted(self.mismatched.items())
        ]
        problems = []
        if self.missing:
            problems.append(f"{len(self.missing)} of {self.total} are missing: {abridged(sorted(self.missing), NAMED)}")
        if shapes:
            problems.append(f"{len(shapes)} have another shape: {abridged(sorted(shapes), NAMED)}")
        if self.unexpected:
            problems.append(f"{len(self.unexpected)} are unexpected: {abridged(sorted(self.unexpected), NAMED)}")
        return ModelError(
            f"The weights in {self.source} must be those that its config.json describes for "
            f"{type(self.model).__name__}; {'; '.join(problems)}. Take the config.json and the weights "
            "of one model, and save the weights of the model itself, not of what wraps it."
        )


@dataclass
class OpenedWeights:
    """Result of loading files; see :func:`checked_weights`.

    Attributes:
        differences: files whose model has random weights that were not allowed yet.
        fewer_layers: whether the configuration has fewer layers than the file on purpose.
        constants: names of the last file's entries that are no weights, such as position ids.
    """

    fewer_layers: bool = False
    differences: list[Difference] = field(default_factory=list)
    constants: frozenset[str] = frozenset()

    def allow_unused(self, compute: Callable[[], Sequence[Tensor]]) -> list[str]:
        """Allow random weights that the outputs of ``compute`` do not depend on, and return their names.

        ModelError if there are others. ``compute`` is called with gradients enabled, and only if a weight is random.
        """
        return [name for difference in self._take() for name in _check_unused(difference, compute)]

    def allow_head(self) -> list[str]:
        """Allow random weights after the hidden states, as in a new head, and return their names.

        ModelError if the hidden states depend on one of them.
        """
        return [
            name
            for difference in self._take()
            for name in _check_unused(difference, partial(_hidden_states, difference.model))
        ]

    def _take(self) -> list[Difference]:
        # Taken out, as what is left at the end of the context is an error.
        differences = self.differences
        self.differences = []
        return differences


_current_weights: ContextVar[OpenedWeights | None] = ContextVar("opened weights", default=None)


@contextmanager
def checked_weights(*, fewer_layers: bool = False) -> Iterator[OpenedWeights]:
    """Check the weights of transformers models that are loaded within.

    At the end every random weight must have been allowed. A prefix that all names share, as wrappers write it
    (``module.``, ``_orig_mod.``), is removed with a warning.

    Raises:
        ModelError: naming the weights that are missing, unexpected, or of another shape.
    """
    opened_weights = OpenedWeights(fewer_layers)
    token = _current_weights.set(opened_weights)
    try:
        yield opened_weights
    finally:
        _current_weights.reset(token)
    # Only after a load that did not fail: otherwise its own error is the cause.
    for difference in opened_weights.differences:
        raise difference.error()


def _check_unused(difference: Difference, compute: Callable[[], Sequence[Tensor]]) -> list[str]:
    names = difference.random
    weights = [_weight(difference.model, name) for name in names]
    if any(weight is None for weight in weights):
        raise difference.error()
    trained = [weight.requires_grad for weight in weights]
    with torch.enable_grad():
        for weight in weights:
            weight.requires_grad_(True)
        # One sum over all outputs, so that a single backward pass shows every dependence.
        total = torch.stack([output.float().sum() for output in compute()]).sum()
        # where everything in use is frozen, as under adapters, no gradient reaches anything
        gradients: Sequence[Tensor | None] = [None] * len(weights)
        if total.requires_grad:
            gradients = torch.autograd.grad(total, weights, allow_unused=True)
    for weight, before in zip(weights, trained, strict=True):
        weight.requires_grad_(before)
    if any(gradient is not None for gradient in gradients):
        raise difference.error()
    return names


def _hidden_states(model: Any) -> list[Tensor]:
    """Return the last hidden states of a few tokens, in a list."""
    ids = torch.arange(1, 4, device=model.device)[None] % model.config.get_text_config().vocab_size
    decoder = {"decoder_input_ids": ids} if model.config.is_encoder_decoder else {}
    return [model.base_model(input_ids=ids, attention_mask=torch.ones_like(ids), **decoder).last_hidden_state]


def _weight(model: Any, name: str) -> Any:
    """Return a weight by its name; ``None`` for a buffer, which gets no gradient that could show its use."""
    try:
        return model.get_parameter(name)
    except AttributeError:
        return None


def _shape(shape: Sequence[int]) -> str:
    return "×".join(map(str, shape)) or "one number"


def _convert_checked(model: Any, state_dict: dict[str, Any], *args: Any, **options: Any) -> Any:
    """Load weights as transformers does; if it can use none of them, without the prefix that their names share."""
    opened_weights = _current_weights.get()
    if opened_weights is None:
        return _convert(model, state_dict, *args, **options)
    settings = options.get("load_config")
    source = str(getattr(settings, "pretrained_model_name_or_path", ""))
    opened_weights.constants = frozenset(name for name, value in state_dict.items() if _is_constant(value))
    result = _convert(model, state_dict, *args, **options)
    wrapper = ""
    # Wrappers may be nested, as in module._orig_mod.
    while len(result[0].unexpected_keys) == len(state_dict) and (first := _common_prefix(list(state_dict))):
        wrapper += first
        state_dict = {name.removeprefix(first): value for name, value in state_dict.items()}
        result = _convert(model, state_dict, *args, **options)
    # Without the prefix some weights have found their place.
    if wrapper and len(result[0].unexpected_keys) < len(state_dict):
        logger.warning(
            f"The names of all weights in {source} begin with {wrapper!r}, as a wrapper saves them; they are read "
            "without it. Save the wrapped model itself to avoid this warning."
        )
    if result[0].mismatched_keys and not getattr(settings, "ignore_mismatched_sizes", False):
        raise _difference(model, source, result[0]).error()  # before memory is allocated for absurd shapes
    return result


def _report_checked(
    model: Any, pretrained_model_name_or_path: Any, ignore_mismatched_sizes: bool, loading_info: Any, **kwargs: Any
) -> None:
    """Check the loading report of a file in place of logging it."""
    opened_weights = _current_weights.get()
    if opened_weights is None:
        _report(model, pretrained_model_name_or_path, ignore_mismatched_sizes, loading_info, **kwargs)
        return
    difference = _difference(model, str(pretrained_model_name_or_path), loading_info)
    problems = [*loading_info.error_msgs, *loading_info.conversion_errors.values()]
    if problems:
        raise ModelError(f"The weights in {difference.source} cannot be read: {problems[0].splitlines()[0]}")
    unused = [
        name for name in difference.unexpected if name not in opened_weights.constants and _is_inside(model, name)
    ]
    if not opened_weights.fewer_layers:
        if any(_is_needed(model, name) for name in unused):
            raise difference.error()
        if unused and not difference.random:
            logger.warning(
                f"{len(unused)} weights in {difference.source} are not read, as its config.json describes none of such "
                f"names: {abridged(sorted(unused), NAMED)}. If they belong to the model, its config.json is that of "
                "another one."
            )
    if difference.random:
        opened_weights.differences.append(difference)


def _difference(model: Any, source: str, loading_info: Any) -> Difference:
    weights = model.state_dict()
    return Difference(
        source=source,
        model=model,
        missing=sorted(name for name in loading_info.missing_keys if _is_random(weights.get(name))),
        mismatched={name: (tuple(stored), tuple(needed)) for name, stored, needed in loading_info.mismatched_keys},
        unexpected=sorted(loading_info.unexpected_keys),
        total=len(weights),
    )


def _is_random(weight: Tensor | None) -> bool:
    """Return whether a missing weight is initialized at random; position ids and the like are computed."""
    return weight is None or weight.is_floating_point()


def _is_inside(model: Any, name: str) -> bool:
    """Return whether a name belongs to the base model, and not to the head of another task."""
    inner = name.removeprefix(f"{model.base_model_prefix}.")
    buffers = {name for name, _ in model.base_model.named_buffers()}  # computed today; older files store them
    return inner.partition(".")[0] in dict(model.base_model.named_children()) and inner not in buffers


def _is_needed(model: Any, name: str) -> bool:
    """Return whether a weight belongs to a further layer, or to a layer that the configuration has without it."""
    module: Any = model.base_model
    *path, last = name.removeprefix(f"{model.base_model_prefix}.").split(".")
    for attribute in path:
        if isinstance(module, nn.ModuleList) and attribute.isdecimal() and int(attribute) >= len(module):
            return True
        module = getattr(module, attribute, None)
        if not isinstance(module, nn.Module):
            return False
    return last in ("weight", "bias") and not list(module.children()) and bool(list(module.parameters()))


def _is_constant(value: Any) -> bool:
    """Return whether an entry of a file is no weight: integers, a scalar, or an attention mask."""
    shape = tuple(value.shape if isinstance(value, Tensor) else value.get_shape())
    if isinstance(value, Tensor):
        floating = value.is_floating_point()
    else:
        floating = value.get_dtype().startswith(("F", "BF"))
    return not floating or shape in ((), (1,)) or (len(shape) == 4 and shape[:2] == (1, 1) and shape[2] == shape[3])


def _common_prefix(names: Sequence[str]) -> str:
    """Return the prefix that all names share, with its dot; ``""`` if there is none."""
    first, point, _ = names[0].partition(".")
    if point and all(name.startswith(f"{first}.") for name in names):
        return f"{first}."
    return ""


modeling_utils: Any = import_module("transformers.modeling_utils")
adapters: Any = import_module("transformers.integrations.peft")
# transformers has no hook for its loading report, so two functions of its loader are replaced for the whole process
_report = modeling_utils.log_state_dict_report
_convert = modeling_utils.convert_and_load_state_dict_in_model
modeling_utils.log_state_dict_report = _report_checked
modeling_utils.convert_and_load_state_dict_in_model = _convert_checked
# The integration of peft has imported the function by name, and so holds a reference of its own.
adapters.log_state_dict_report = _report_checked
