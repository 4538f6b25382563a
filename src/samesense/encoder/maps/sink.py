"""Leave the attention sink of a language model, its first token, out of mean pooling."""

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
"""Name of the prompt that pooling leaves out."""


def is_causal(model: SentenceTransformer) -> bool:
    """Return whether a model is causal: a token's vector does not depend on later tokens."""
    trunk = model[0]
    if not isinstance(trunk, Transformer):
        return False
    with without_dropout(trunk), torch.inference_mode():
        inputs = (batch_to_device(trunk.preprocess([text]), trunk.model.device) for text in ("a", "a b c"))
        single, followed = (trunk(features)["token_embeddings"][0, 0].float() for features in inputs)
    return torch.allclose(single, followed, rtol=1e-4, atol=1e-4)  # tight, as in a narrow cone all vectors are similar


def leave_out_sink(model: SentenceTransformer) -> bool:
    """Exclude the attention sink of a causal model from its mean pooling; return whether the model has one.

    The first token of a causal model sees only itself. Other tokens attend to it when nothing else is relevant, and its
    vector, nearly the same for all texts, differs in kind from theirs. Here a special token before every text becomes
    the sink. It is a prompt that the pooling leaves out, so that every reader of the folder does the same. A chat
    template, whose tokens would be part of every text, is dropped. The effect depends on the layer: see
    reproduce/context/bank.md.

    Source: Xiao et al. 2024 (ICLR), "Efficient Streaming Language Models with Attention Sinks", for the phenomenon.

    Raises:
        ModelError: if the tokenizer has no special token that could begin a text.
    """
    trunk = model[0]
    pooling = next((module for module in model if isinstance(module, Pooling)), None)
    if pooling is None or pooling.pooling_mode != "mean" or model.default_prompt_name is not None:
        return False
    if not is_causal(model):
        return False
    tokenizer = trunk.tokenizer
    # The bos token of a chat model may begin a turn of a chat rather than a text.
    if END_OF_TEXT in tokenizer.get_vocab():
        candidates = [END_OF_TEXT]
    else:
        candidates = [tokenizer.bos_token, tokenizer.eos_token]
    token = next((token for token in candidates if token), None)
    if token is None:
        raise ModelError("A text begins with a mark, and this model's tokenizer has neither bos nor eos token.")
    tokenizer.chat_template = None
    trunk.modality_config = {"text": trunk.modality_config["text"]}
    # sentence-transformers does not count a special token at the end of a prompt, so it ends in a line break
    model.prompts = {**model.prompts, SINK: f"{token}\n"}
    model.default_prompt_name = SINK
    pooling.include_prompt = False
    logger.info("a language model: the mark before each text, to which all tokens attend, is left out of the mean")
    return True
