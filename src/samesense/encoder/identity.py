"""What tells one model from another: a fingerprint of everything that decides its vectors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import torch
from sentence_transformers import SentenceTransformer

from samesense.hashes import content_hash


def model_identity(model: SentenceTransformer, precision: str) -> str:
    """Return a text that is the same only for models that give the same vectors.

    It holds a hash over every weight, the tokenizer and the settings of every module, and in plain words the
    precision, the longest input and the prompt. It is taken from the model in memory, so whatever was changed after
    loading counts.
    """
    prompt = model.prompts.get(model.default_prompt_name, "") if model.default_prompt_name else ""
    sha256 = content_hash(_content(model))
    return json.dumps({"sha256": sha256, "precision": precision, "tokens": model.max_seq_length, "prompt": prompt})


def _content(model: SentenceTransformer) -> Iterator[bytes | memoryview]:
    for name, value in sorted(model.state_dict().items()):
        yield f"{name} {value.dtype} {tuple(value.shape)}".encode()
        yield value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data
    settings = [[type(module).__name__, _settings(module)] for module in model]
    yield json.dumps(settings, sort_keys=True, default=str).encode()
    yield _tokenizer_text(model.tokenizer).encode()
    side = getattr(model.tokenizer, "truncation_side", "right")
    yield b"" if side == "right" else str(side).encode()


def _settings(module: Any) -> list[Any]:
    """Return what a module says of itself, and what the configuration of its transformer says."""
    own = module.get_config_dict() if hasattr(module, "get_config_dict") else None
    config: Any = getattr(getattr(module, "model", None), "config", None)
    inner = config.to_dict() if hasattr(config, "to_dict") else {}
    return [own, {key: inner[key] for key in inner if key not in ("_name_or_path", "transformers_version")}]


def _tokenizer_text(tokenizer: Any) -> str:
    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(fast, "to_str"):
        content = json.loads(fast.to_str())
        # these two change with every call
        return json.dumps({key: content[key] for key in content if key not in ("padding", "truncation")})
    return json.dumps(tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else vars(tokenizer), default=str)
