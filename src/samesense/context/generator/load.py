"""Open a pretrained language model, causal or sequence-to-sequence, as a generator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import torch

from samesense.errors import ModelError

if TYPE_CHECKING:
    from samesense.context.generator.base import Generator


def open_language_model(
    name: str,
    *,
    precision: Literal["float32", "bfloat16"] = "float32",
    max_tokens: int = 128,
    device: str = "cpu",
) -> Generator:
    """Open a language model by folder or hub name; what it is, its configuration says.

    Args:
        name: a causal model such as SmolLM2, or a sequence-to-sequence one of the T5 family.
        precision: arithmetic.
        max_tokens: longest sentence in tokens; longer ones are cut.
        device: torch device.

    Raises:
        ModelError: if it cannot be read, or is neither.
    """
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
    if together:
        from samesense.context.generator.infill import InfillGenerator

        return InfillGenerator(model, tokenizer, max_tokens=max_tokens)
    from samesense.context.generator.causal import CausalGenerator

    return CausalGenerator(model, tokenizer, max_tokens=max_tokens)
