"""Open a pretrained language model, causal or sequence-to-sequence, as a generator."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from typing import TYPE_CHECKING, Any, Literal

import torch

from samesense.errors import DataError, ModelError

if TYPE_CHECKING:
    from samesense.context.generator import Generator


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
        from samesense.context.generator_infill import InfillGenerator

        return InfillGenerator(model, tokenizer, max_tokens=max_tokens)
    from samesense.context.generator_causal import CausalGenerator

    return CausalGenerator(model, tokenizer, max_tokens=max_tokens)


def as_it_stands(text: str, *, inside: bool) -> str:
    """Return a sentence as it stands in running text: after a space, if its script has them and it is not the first."""
    text = text.strip()
    if not inside or not text or unicodedata.east_asian_width(text[0]) in "WF":
        return text
    return f" {text}"


def no_token(text: str) -> DataError:
    """Return the error for a sentence of which a tokenizer leaves nothing, so that it has no cost a token."""
    return DataError(f"A sentence must have a token; {text!r} has none for this model. Leave it out.")


def pretrained_identity(model: Any, tokenizer: Any, settings: list[Any]) -> str:
    """Return a hash over the weights and the tokenizer, with the settings in plain words."""
    digest = hashlib.sha256(json.dumps(sorted(tokenizer.get_vocab().items())).encode())
    config = model.config.to_dict()
    kept = {key: config[key] for key in sorted(config) if key not in ("_name_or_path", "transformers_version")}
    digest.update(json.dumps(kept, default=str).encode())
    for name, value in sorted(model.state_dict().items()):
        digest.update(f"{name} {value.dtype}".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return json.dumps([*settings, str(model.dtype), digest.hexdigest()])
