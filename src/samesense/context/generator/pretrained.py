"""What generators of pretrained language models share."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator
from typing import Any

import torch

from samesense.errors import DataError
from samesense.files import content_hash


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
    return json.dumps([*settings, str(model.dtype), content_hash(_content(model, tokenizer))])


def _content(model: Any, tokenizer: Any) -> Iterator[bytes | memoryview]:
    yield json.dumps(sorted(tokenizer.get_vocab().items())).encode()
    config = model.config.to_dict()
    kept = {key: config[key] for key in sorted(config) if key not in ("_name_or_path", "transformers_version")}
    yield json.dumps(kept, default=str).encode()
    for name, value in sorted(model.state_dict().items()):
        yield f"{name} {value.dtype}".encode()
        yield value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data
