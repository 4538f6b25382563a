"""Opens a pretrained language model of transformers as a generator."""

from __future__ import annotations

from typing import Any, Literal

import torch

from samesense.context.generator.base import Generator
from samesense.context.generator.causal import CausalGenerator
from samesense.context.generator.infill import InfillGenerator
from samesense.errors import ModelError


def open_language_model(
    name: str,
    *,
    precision: Literal["float32", "bfloat16"] = "float32",
    max_tokens: int = 128,
    device: str = "cpu",
) -> Generator:
    """Open a language model by folder or hub name; what it is, its configuration says."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    dtype = {"float32": torch.float32, "bfloat16": torch.bfloat16}[precision]
    try:
        together = AutoConfig.from_pretrained(name).is_encoder_decoder
        kind: Any = AutoModelForSeq2SeqLM if together else AutoModelForCausalLM
        model = kind.from_pretrained(name, dtype=dtype).to(device)
        tokenizer = AutoTokenizer.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise ModelError(
            f"{name!r} cannot be opened as a causal or sequence-to-sequence language model: {error}. Name a folder, or "
            "a model of the hub, that is one."
        ) from error
    return (InfillGenerator if together else CausalGenerator)(model, tokenizer, max_tokens=max_tokens)
