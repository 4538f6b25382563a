"""Writing model folders atomically, never over anything else, and the identity of a model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from sentence_transformers import CrossEncoder, SentenceTransformer

from samesense.encoder.forward.routes import (
    default_prompt,
    has_routes,
    input_of,
    longest_of,
    prompt_of,
    tells_tasks_apart,
)
from samesense.encoder.names import PROMPTS
from samesense.encoder.saving.portable import make_portable
from samesense.errors import OutputError
from samesense.execution.progress import without_bars
from samesense.files import parse_json, replacing_folder
from samesense.hashes import content_hash
from samesense.places import check_empty, check_folder, is_free

_MARKS: dict[str, tuple[str, ...]] = {
    "modules.json": (),
    "config.json": ("model_type", "architectures"),
    "manifest.json": ("method",),
    "cell.json": (),
}
"""Files that mark a folder as a model or a run (cells of sweeps included), which `overwrite` may replace.

Other programs use some of these names too, so such a file must contain one of the keys given with its name."""


@without_bars()
def save(model: SentenceTransformer | CrossEncoder, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write ``model`` to ``folder`` atomically, by one rename, and return the folder.

    No card is written; see :mod:`samesense.encoder.saving.card`.

    Raises:
        OutputError: if the folder exists, is not empty, and ``overwrite`` is false.
    """
    target = Path(folder)
    check_free(target, overwrite=overwrite)
    with replacing_folder(target) as temporary:
        model.save(str(temporary), create_model_card=False)
        make_portable(model, temporary)
    return target


def check_free(target: Path, *, overwrite: bool, inputs: Iterable[str | Path] = ()) -> None:
    """Raise OutputError if ``target`` holds something that writing would lose, or cannot be written.

    With ``overwrite`` its content may be lost, except ``inputs``; see :func:`~samesense.places.check_folder`. It may
    not lie inside the folder of a model among the inputs either, as it would count as part of that model.
    """
    check_folder(target)
    for input_folder in (Path(path).expanduser().resolve() for path in inputs):
        if input_folder in target.resolve().parents and _is_model(input_folder):
            raise OutputError(
                f"{target} lies in the folder of the model that is read, {input_folder}. Name another output."
            )
    if not overwrite:
        check_empty(target)
    if is_free(target):
        return
    if not _is_model(target):
        raise OutputError(
            f"{target} is not replaced, as it is neither a model nor a run: it has no {', no '.join(_MARKS)} of one. "
            "Choose another output folder, or delete it first."
        )
    check_folder(target, inputs)


def _is_model(folder: Path) -> bool:
    """Return whether a folder is marked as a model or a run."""
    return any(_is_marked(folder / name, keys) for name, keys in _MARKS.items())


def _is_marked(path: Path, keys: Sequence[str]) -> bool:
    """Return whether a file exists and, if there are keys, contains one of them."""
    if not path.is_file():
        return False
    with suppress(OSError, ValueError):
        content = parse_json(path.read_bytes()) if keys else {}
        return not keys or (isinstance(content, dict) and any(key in content for key in keys))
    return False


def model_identity(model: SentenceTransformer, precision: str) -> str:
    """Return a JSON text that is equal only for models that give equal vectors.

    It contains a hash over all weights, the tokenizer and the settings of every module, and in plain form the
    precision, the maximum length, the prompt, and the dimension to which vectors are truncated, if they are. It
    describes the model in memory, so changes made after loading count.
    """
    identity: dict[str, Any] = {
        "sha256": content_hash(_content(model)),
        "precision": precision,
        "tokens": model.max_seq_length,
        "prompt": default_prompt(model),
    }
    if tells_tasks_apart(model):
        identity |= {task: [prompt_of(model, task), longest_of(model, task)] for task in PROMPTS}
    return json.dumps(identity if model.truncate_dim is None else {**identity, "dim": model.truncate_dim})


def weights_hash(module: torch.nn.Module) -> str:
    """Return a hash over the weights of a module."""
    return content_hash(_weights(module))


def _weights(module: torch.nn.Module) -> Iterator[bytes | memoryview]:
    # sorted, so that the order of registration does not matter
    for name, value in sorted(module.state_dict().items()):
        yield f"{name} {value.dtype} {tuple(value.shape)}".encode()
        # the bytes themselves, as numpy has no bfloat16
        yield value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data


def _content(model: SentenceTransformer) -> Iterator[bytes | memoryview]:
    yield from _weights(model)
    settings = [[type(module).__name__, _settings(module)] for module in model]
    yield json.dumps(settings, sort_keys=True, default=str).encode()
    for tokenizer in _tokenizers(model):
        yield _tokenizer_text(tokenizer).encode()
        side = getattr(tokenizer, "truncation_side", "right")
        yield b"" if side == "right" else str(side).encode()


def _tokenizers(model: SentenceTransformer) -> list[Any]:
    """Return the tokenizer of a model, or of each of its routes."""
    if has_routes(model):
        return [input_of(model, task).tokenizer for task in PROMPTS]
    return [model.tokenizer]


def _settings(module: Any) -> list[Any]:
    """Return the configuration of a module and of its transformer, if it has one."""
    config_dict = module.get_config_dict() if hasattr(module, "get_config_dict") else None
    config: Any = getattr(getattr(module, "model", None), "config", None)
    config_values = config.to_dict() if hasattr(config, "to_dict") else {}
    # where a model was loaded from, and by which version, does not change its vectors
    return [
        config_dict,
        {key: config_values[key] for key in config_values if key not in ("_name_or_path", "transformers_version")},
    ]


def _tokenizer_text(tokenizer: Any) -> str:
    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(fast, "to_str"):
        content = json.loads(fast.to_str())
        # these two change with every call
        return json.dumps({key: content[key] for key in content if key not in ("padding", "truncation")})
    return json.dumps(tokenizer.get_vocab() if hasattr(tokenizer, "get_vocab") else vars(tokenizer), default=str)
