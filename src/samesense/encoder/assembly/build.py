"""Find or assemble an encoder: a folder, a hub name, or the small default that a package carries."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling, WeightedLayerPooling
from sentence_transformers.util import ORIGINAL_TRANSFORMER_MODELS, load_file_path

from samesense.encoder.assembly.adapters import check_adapters, merge_adapters
from samesense.encoder.assembly.card_data import offline_card_data
from samesense.encoder.assembly.padding import fit_tokenizers
from samesense.encoder.assembly.pooling import freeze_layer_weights, pooling_modules
from samesense.encoder.assembly.template import set_template
from samesense.encoder.assembly.trial import check_embeddings, trial_embeddings
from samesense.encoder.forward.positions import set_length
from samesense.encoder.forward.routes import FIXED
from samesense.encoder.names import TEMPLATE_POOLING, is_template, resolve, split_options, weights_source
from samesense.errors import ConfigError, ModelError
from samesense.execution.progress import without_bars
from samesense.execution.weights import checked_weights
from samesense.failures import opening, shortened
from samesense.hub import hub_access
from samesense.types import First, PoolingName

Model = TypeVar("Model", SentenceTransformer, CrossEncoder)


@without_bars()
def build(
    name: str,
    *,
    pooling: PoolingName | None = None,
    first: First = "layer",
    max_seq_length: int | None = None,
    device: str | None = None,
) -> SentenceTransformer:
    """Load an encoder, or make one of a bare transformer and a pooling.

    Args:
        name: model folder, hub name, or ``"default"``.
        pooling: ``None`` keeps a sentence-transformers folder's own pooling and gives a bare transformer ``mean``.
            Another one replaces the model's own; modules behind it, and prompts, stay.
        first: what "first" means in ``first-last``.
        max_seq_length: maximum input length in tokens; ``None`` keeps the model's own. It is limited by the model's
            positions.
        device: torch device; ``None`` lets sentence-transformers choose.

    Raises:
        ModelError: if the model cannot be read.
        MissingExtraError: if it has adapters, and their package is not installed.
        ConfigError: if the pooling does not exist, or torch cannot use the device.

    Weights are always converted to float32.

    Differs: a bare language model's chat template is dropped, so that a sentence is encoded unchanged.
        sentence-transformers 6 would wrap each one into a chat message together with the template's system prompt.
    """
    source = resolve(name)
    check_device(device)
    check_adapters(source)
    with (
        opening(
            f"the model {name!r}",
            "Give a model folder, or a hub name while the hub can be reached ('default' needs neither).",
        ),
        hub_access(weights_source(source)),
        checked_weights() as weights,
    ):
        if Path(source).exists() and is_bare(source):
            model = SentenceTransformer(
                modules=_modules_of_bare_transformer(source), device=device, model_card_data=offline_card_data()
            )
        else:
            model = SentenceTransformer(source, device=device, model_card_data=offline_card_data())
        model.float()  # in half precision small training steps would round to nothing
        fit_tokenizers(model)
        weights.allow_unused(lambda: trial_embeddings(model))
        merge_adapters(model)
        check_embeddings(model)
    if pooling is not None:
        set_pooling(model, pooling, first)
    set_length(model, max_seq_length)
    freeze_layer_weights(model)
    return model


def check_device(device: str | None) -> None:
    """Raise ConfigError if torch cannot compute on a device of this name."""
    if device is None:
        return
    try:
        # torch parses names of devices that the machine lacks; only a computation tells.
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:  # AssertionError without CUDA
        raise ConfigError(
            f"device is one that torch can compute on, such as cpu or cuda; received {device!r}: {shortened(error)}"
        ) from error


def is_bare(name: str) -> bool:
    """Return whether ``name`` is a plain transformer, without the modules of sentence-transformers.

    If the hub does not answer in time, the answer is no; loading the model then reports the problem.
    """
    source = resolve(name)
    if "/" not in source and not Path(source).exists() and source.lower() not in ORIGINAL_TRANSFORMER_MODELS:
        source = f"sentence-transformers/{source}"  # as sentence-transformers completes a name without an owner
    try:
        with hub_access(source):
            return load_file_path(source, "modules.json") is None
    except OSError:
        return False


PROMPT = "default"
"""Name under which a model stores a prompt that has no name."""


def build_named(
    name: str, *, pooling: PoolingName | None = None, prompt: str | None = None, device: str | None = None
) -> SentenceTransformer:
    """Load an encoder by a name that may hold its pooling and its template, as :func:`build` and :func:`set_prompt`.

    A bare transformer in a template gets the pooling ``lasttoken``, unless another one is named.
    """
    base, named_pooling, template = split_options(name)
    if template is not None:
        prompt = template
    pooling = pooling or named_pooling
    if pooling is None and is_template(prompt) and is_bare(base):
        pooling = TEMPLATE_POOLING
    return set_prompt(build(base, pooling=pooling, device=device), prompt)


def set_prompt(model: Model, prompt: str | None) -> Model:
    """Set the prompt that a model reads before every text, in place, and return the model; it is saved with it.

    ``prompt`` is the text itself, or the name of one of the model's own prompts, all of which stay; ``""`` means no
    prompt, and ``None`` changes nothing. A prompt with ``{text}`` is a template, which stands around every text: see
    :func:`~samesense.encoder.assembly.template.set_template`. ConfigError if the model has a prompt of this name with
    an empty text.
    """
    if prompt is None:
        return model
    if is_template(prompt) and prompt not in model.prompts:
        set_template(model, prompt)
        prompt = ""
    if not prompt:
        model.default_prompt_name = None
        setattr(model, FIXED, True)
        return model
    if model.prompts.get(prompt) == "":
        raise ConfigError(f"The model has no text for its prompt {prompt!r}. Give the text itself, as in 'query: '.")
    name = prompt if prompt in model.prompts else PROMPT
    model.prompts = {**model.prompts, name: model.prompts.get(prompt, prompt)}
    model.default_prompt_name = name
    setattr(model, FIXED, True)
    return model


def _modules_of_bare_transformer(source: str) -> list[object]:
    trunk = Transformer(source)
    if getattr(trunk.tokenizer, "chat_template", None):
        trunk = Transformer(source, modality_config=_TEXT_ONLY, module_output_name="token_embeddings")
        trunk.tokenizer.chat_template = None
    return [trunk, *pooling_modules(trunk)]


_TEXT_ONLY = {"text": {"method": "forward", "method_output_name": "last_hidden_state"}}


def set_pooling(model: SentenceTransformer, pooling: PoolingName, first: First = "layer") -> None:
    """Replace the pooling of a model, in place; modules behind it and prompts stay.

    Raises:
        ModelError: if the first module of the model is not a transformer.
        ConfigError: if the pooling does not exist.
    """
    trunk, *followers = list(model)
    if not isinstance(trunk, Transformer):
        raise ModelError(
            f"A pooling can be chosen for transformers only; this model begins with {type(trunk).__name__}."
        )
    trunk.model.config.output_hidden_states = False  # pooling_modules switches it on if needed
    later_modules = [module for module in followers if not isinstance(module, Pooling | WeightedLayerPooling)]
    poolings = pooling_modules(trunk, pooling, first=first)
    del model[1:]
    model.extend(module.to(model.device) for module in [*poolings, *later_modules])
