"""Build a cross-encoder: a transformer that reads both texts of a pair together, with a head of one logit."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from sentence_transformers import CrossEncoder
from sentence_transformers.base.modules import Transformer
from tokenizers.processors import TemplateProcessing
from transformers import AutoConfig, set_seed

from samesense.encoder.assembly.card_data import offline_cross_card_data
from samesense.encoder.assembly.cross import is_cross_encoder
from samesense.encoder.assembly.padding import give_padding
from samesense.encoder.forward.positions import set_length
from samesense.encoder.model_files import modules_of
from samesense.encoder.names import base_of, resolve, weights_source
from samesense.errors import ModelError
from samesense.execution.progress import without_bars
from samesense.execution.weights import checked_weights
from samesense.failures import opening
from samesense.hub import hub_access

logger = logging.getLogger(__name__)

_LOGITS = {"text": {"method": "forward", "method_output_name": "logits"}}


@without_bars()
def build_cross(
    name: str, *, max_seq_length: int | None = None, seed: int = 0, device: str | None = None
) -> CrossEncoder:
    """Load a cross-encoder of one logit, or build one from a transformer with a new linear head.

    A model with a head of one logit keeps it. Every other start model (a bare transformer, a sentence encoder without
    its pooling and later modules, a classifier of several classes) gets a new head.

    Args:
        name: model folder, hub name, or ``"default"``.
        max_seq_length: maximum length of a pair in tokens, limited by the model's own; ``None`` keeps that.
        seed: seed of a new head.
        device: torch device; ``None`` lets sentence-transformers choose.

    Raises:
        ModelError: if the model cannot be read, is not a transformer with a classification class, or has no token that
            could separate two texts.

    Differs: a language model's chat template is dropped, so that a pair is not read as a chat with a system prompt. If
        its tokenizer puts nothing between two texts ("eats" and "he" would be read as "eatshe"), the end-of-text token
        separates them. Both changes are saved with the model.
    """
    source = resolve(name)
    if base_of(Path(source)) is not None:
        raise ModelError(f"A cross-encoder is made of whole weights, and {name} holds adapters. Merge them first.")
    # A new head is drawn while the model is loaded.
    set_seed(seed)
    with (
        opening(
            f"{name!r} as the start of a cross-encoder",
            "Give the folder of a transformer, a sentence encoder or a cross-encoder, or a hub name while the hub can "
            "be reached.",
        ),
        hub_access(weights_source(source)),
        checked_weights() as weights,
    ):
        trunk = Transformer(
            _trunk_folder(source),
            transformer_task="sequence-classification",
            config_kwargs={"num_labels": 1},
            # A head of several classes does not fit into one logit, and is replaced.
            model_kwargs={"ignore_mismatched_sizes": True},
            modality_config=_LOGITS,
            module_output_name="scores",
        )
        new = weights.allow_head()
        if new:
            logger.info(f"{name} has no head that gives one score: {', '.join(new)} are new and start at random.")
        trunk.tokenizer.chat_template = None
        give_padding(trunk)
        trunk.model.config.pad_token_id = trunk.tokenizer.pad_token_id  # by which a language model finds the last token
        _separate(trunk.tokenizer, name)
        if max_seq_length is not None:
            trunk.tokenizer.model_max_length = min(max_seq_length, trunk.tokenizer.model_max_length)
        model = CrossEncoder(modules=[trunk], device=device, model_card_data=offline_cross_card_data())
        model.float()  # see build
        set_length(model, None)
    return model


def has_one_logit(name: str) -> bool:
    """Return whether ``name`` is a cross-encoder whose head :func:`build_cross` keeps."""
    source = resolve(name)
    if not is_cross_encoder(source):
        return False
    fix = "Give the folder of one, or a hub name while the hub can be reached."
    with opening(f"the cross-encoder {name!r}", fix), hub_access(source):
        return bool(AutoConfig.from_pretrained(_trunk_folder(source)).num_labels == 1)


def _trunk_folder(source: str) -> str:
    """Return the folder of the first module of a saved model, or ``source`` if it has no modules.json."""
    entries = modules_of(Path(source))
    if not entries:
        return source
    if is_cross_encoder(source) and len(entries) > 1:
        kinds = ", ".join(entry.type.rsplit(".", 1)[1] for entry in entries)
        raise ModelError(f"A cross-encoder that is trained further must be one transformer; {source} is {kinds}.")
    return str(Path(source) / entries[0].path)


def _separate(tokenizer: Any, name: str) -> None:
    """Make the tokenizer put a separator between the texts of a pair, if it puts nothing there."""
    owners = tokenizer("a", "a").sequence_ids(0)  # the text of each token; None for special tokens
    if None in owners[owners.index(0) : owners.index(1)]:
        return
    separator = tokenizer.sep_token or tokenizer.eos_token
    if separator is None:
        raise ModelError(
            f"The tokenizer of {name!r} puts nothing between two texts and has no token that could stand there. "
            "Give it a sep_token."
        )
    # keep the special tokens that the tokenizer puts before a text
    begin = [token for token, owner in zip(tokenizer("a", "a").tokens(), owners, strict=True) if owner is None]
    special = [(token, tokenizer.convert_tokens_to_ids(token)) for token in {separator, *begin}]
    single = [*begin, "$A"]
    pair = [*begin, "$A", separator, "$B:1"]
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single=single, pair=pair, special_tokens=special)
