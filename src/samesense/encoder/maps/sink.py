"""The first token of a language model, to which all others attend, left out of the mean before vectors are mapped."""

from __future__ import annotations

import logging

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules import Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from sentence_transformers.util import batch_to_device

from samesense.encoder.forward.dropout import without_dropout
from samesense.errors import ModelError
from samesense.types import END_OF_TEXT

logger = logging.getLogger(__name__)

SINK = "sink"
"""Name of the prompt that is left out."""


def reads_forwards(model: SentenceTransformer) -> bool:
    """Return whether a token's vector does not depend on what comes after it, as in a language model."""
    trunk = model[0]
    if not isinstance(trunk, Transformer):
        return False
    with without_dropout(trunk), torch.inference_mode():
        read = (batch_to_device(trunk.preprocess([text]), trunk.model.device) for text in ("a", "a b c"))
        alone, followed = (trunk(features)["token_embeddings"][0, 0].float() for features in read)
    return torch.allclose(alone, followed, rtol=1e-4, atol=1e-4)  # weights are float32; a narrow cone is no proof


def leave_out_sink(model: SentenceTransformer) -> bool:
    """Leave the token out of the mean to which all tokens of a language model attend; return whether there is one.

    The first token of a model that reads forwards has seen nothing but itself. The others attend to it where nothing
    else is worth it, and its vector, alike for all texts, is of another kind than theirs. Here a mark that begins every
    text takes its part, as a prompt that the pooling leaves out, so that every reader of the folder does the same. A
    chat template, whose marks would be part of every text, is dropped. How much it matters depends on the layer: see
    reproduce/context/bank.md.

    Source: Xiao et al. 2024 (ICLR), "Efficient Streaming Language Models with Attention Sinks", for what it is.

    Raises:
        ModelError: if the tokenizer has no mark that could begin a text.
    """
    trunk, pooling = model[0], next((module for module in model if isinstance(module, Pooling)), None)
    if pooling is None or pooling.pooling_mode != "mean" or model.default_prompt_name is not None:
        return False
    if not reads_forwards(model):
        return False
    tokenizer = trunk.tokenizer
    marks = [END_OF_TEXT] if END_OF_TEXT in tokenizer.get_vocab() else [tokenizer.bos_token, tokenizer.eos_token]
    mark = next((mark for mark in marks if mark), None)
    if mark is None:
        raise ModelError("A text begins with a mark, and this model's tokenizer has neither bos nor eos token.")
    tokenizer.chat_template = None
    trunk.modality_config = {"text": trunk.modality_config["text"]}
    # sentence-transformers does not count a special token at the end of a prompt, so that a line break ends it
    model.prompts, model.default_prompt_name = {**model.prompts, SINK: f"{mark}\n"}, SINK
    pooling.include_prompt = False
    logger.info("a language model: the mark before each text, to which all tokens attend, is left out of the mean")
    return True
