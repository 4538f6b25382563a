"""Model folders: written whole or not at all, never over anything else; and what makes two models the same."""

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
"""Files by which a folder is known as a model or a run, cells of sweeps among them, which `overwrite` may replace.

Other programs have files of some of these names too: one of the keys beside a name must be in such a file."""


@without_bars()
def save(model: SentenceTransformer | CrossEncoder, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write ``model`` to ``folder`` in one rename, so that a folder is there whole or not at all.

    Its card is for whoever knows how it was made; see :mod:`samesense.encoder.saving.card`.

    Raises:
        OutputError: if the folder exists, is not empty, and ``overwrite`` is false.
    """
    target = Path(folder)
    check_free(target, overwrite=overwrite)
    with replacing_folder(target) as beside:
        model.save(str(beside), create_model_card=False)
        make_portable(model, beside)
    return target


def check_free(target: Path, *, overwrite: bool, inputs: Iterable[str | Path] = ()) -> None:
    """Raise OutputError if ``target`` holds something that writing would lose, or cannot be written.

    With ``overwrite``, what it holds may be lost, but for ``inputs``; see :func:`~samesense.places.check_folder`. It
    may not lie in one of these that is a model either, as what is in its folder counts as part of it.
    """
    check_folder(target)
    for home in (Path(given).expanduser().resolve() for given in inputs):
        if home in target.resolve().parents and _is_model(home):
            raise OutputError(f"{target} lies in the folder of the model that is read, {home}. Name another output.")
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
    """Return whether a folder is known as a model or a run."""
    return any(_is_marked(folder / name, keys) for name, keys in _MARKS.items())


def _is_marked(path: Path, keys: Sequence[str]) -> bool:
    """Return whether a file is there and, where keys are asked for, holds one of them."""
    if not path.is_file():
        return False
    with suppress(OSError, ValueError):
        content = _read(path) if keys else {}
        return not keys or (isinstance(content, dict) and any(key in content for key in keys))
    return False


def _read(path: Path) -> Any:
    return parse_json(path.read_bytes())


def model_identity(model: SentenceTransformer, precision: str) -> str:
    """Return a text that is the same only for models that give the same vectors.

    It holds a hash over every weight, the tokenizer and the settings of every module, and in plain words the
    precision, the longest input, the prompt, and the numbers of a vector that are kept, if not all are. It is taken
    from the model in memory, so whatever was changed after loading counts.
    """
    sha256, prompt = content_hash(_content(model)), default_prompt(model)
    known: dict[str, Any] = {
        "sha256": sha256, "precision": precision, "tokens": model.max_seq_length, "prompt": prompt,
    }  # fmt: skip
    if tells_tasks_apart(model):
        known |= {task: [prompt_of(model, task), longest_of(model, task)] for task in PROMPTS}
    return json.dumps(known if model.truncate_dim is None else {**known, "dim": model.truncate_dim})


def _content(model: SentenceTransformer) -> Iterator[bytes | memoryview]:
    for name, value in sorted(model.state_dict().items()):
        yield f"{name} {value.dtype} {tuple(value.shape)}".encode()
        yield value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data
    settings = [[type(module).__name__, _settings(module)] for module in model]
    yield json.dumps(settings, sort_keys=True, default=str).encode()
    for tokenizer in _tokenizers(model):
        yield _tokenizer_text(tokenizer).encode()
        side = getattr(tokenizer, "truncation_side", "right")
        yield b"" if side == "right" else str(side).encode()


def _tokenizers(model: SentenceTransformer) -> list[Any]:
    """Return the tokenizer of a model, or of each of its routes."""
    return [input_of(model, task).tokenizer for task in PROMPTS] if has_routes(model) else [model.tokenizer]


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
