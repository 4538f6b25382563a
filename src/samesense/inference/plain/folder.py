"""Open the folder of a model as an encoder in NumPy, or raise NotPlainError if it needs torch.

Every setting in the files must be one that this package implements. Nothing is guessed: anything else is left to torch.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from samesense.encoder.model_files import ADAPTERS, modules_of
from samesense.inference.onnx.format import Description
from samesense.inference.onnx.token_encoder import SETTINGS, cut_to
from samesense.inference.plain.encoder import NumpyEncoder, PooledTransformer, StaticMean, Trunk
from samesense.inference.plain.modules import Map, Pooling, chosen_pooling, read_layers, read_map, read_pooling
from samesense.inference.plain.tokenizer import read_bare_tokenizer, read_settings, read_tokenizer
from samesense.inference.plain.transformer import Transformer
from samesense.inference.plain.weights import FILE, NotPlainError, Weights
from samesense.types import PoolingName

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from tokenizers import Tokenizer

TRIAL = "a man and 2 dogs"
"""A text that is encoded for a test, so that damaged weights are left to torch, which says what is wrong."""

_OF_TRANSFORMER = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
    "do_lower_case": False,
}
"""Settings of a transformer that are supported only with these values."""


def open_plain(
    folder: Path,
    open_torch: Callable[[], SentenceTransformer],
    *,
    pooling: PoolingName | None = None,
    threads: int | None = None,
) -> NumpyEncoder:
    """Open a model folder with NumPy.

    Args:
        folder: folder of a sentence-transformers model, or of a bare transformer.
        open_torch: opens the same model with torch.
        pooling: pooling to use instead of the model's own; ``None`` keeps that, or uses ``mean`` for a bare
            transformer.
        threads: number of threads.

    Raises:
        NotPlainError: if the folder holds anything that is not supported here.
    """
    try:
        encoder = _open(folder, open_torch, pooling, threads)
        trial = encoder.embed(encoder.tokenised([TRIAL]), 0)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
        raise NotPlainError(f"a file has another form: {error}") from error
    except Exception as error:  # tokenizers raises plain Exception
        if type(error) is not Exception:
            raise
        raise NotPlainError(f"its tokenizer cannot be read: {error}") from error
    if not np.isfinite(trial).all():
        raise NotPlainError("its vector of a short text is not finite")
    # Absolute, as another process may run in another folder.
    encoder.reopen = partial(open_plain, folder.absolute(), open_torch, pooling=pooling, threads=threads)
    return encoder


def _open(
    folder: Path, open_torch: Callable[[], SentenceTransformer], pooling: PoolingName | None, threads: int | None
) -> NumpyEncoder:
    if any((folder / name).exists() for name in (ADAPTERS, "router_config.json")):
        raise NotPlainError("it has adapters or routes")
    settings = _settings_of_model(folder)
    entries = _modules(folder)
    kind, first = entries[0]
    if kind == "StaticEmbedding":
        if pooling is not None:
            raise NotPlainError("a pooling is for transformers")
        tokenizer, trunk, facts, behind = _static(first, entries[1:])
    else:
        tokenizer, trunk, facts, behind = _transformer(
            first, entries[1:], pooling, bare=not (folder / "modules.json").is_file()
        )
    width = facts.pop("width")
    maps, dim = _maps(behind, width)
    prompts = settings["prompts"]
    # NumPy pools every token, those of the prompt too.
    if facts.pop("leaves_prompt_out") and any(prompts.values()):
        raise NotPlainError("it leaves its prompt out of the pooling")
    truncate_dim = settings["truncate_dim"]
    description = Description(
        samesense=version("samesense"),
        dim=dim if truncate_dim is None else min(truncate_dim, dim),
        prompt=prompts[settings["default"]] if settings["default"] is not None else "",
        # Each text is computed alone, so that nothing is ever padded.
        padding_side="right",
        pad_token=0,
        inputs=["input_ids"],
        modules=[name for name, _ in entries],
        graphs={},
        **facts,
    )
    cut_to(tokenizer, description.max_tokens)
    return NumpyEncoder(
        folder, description, tokenizer, trunk, maps, open_torch=open_torch, truncate_dim=truncate_dim, threads=threads
    )


def _settings_of_model(folder: Path) -> dict[str, Any]:
    """Return the prompts, the name of the default one, and ``truncate_dim``."""
    settings = read_settings(folder / SETTINGS) if (folder / SETTINGS).is_file() else {}
    prompts = settings.get("prompts") or {}
    default = settings.get("default_prompt_name")
    keys = {"__version__", "prompts", "default_prompt_name", "similarity_fn_name", "model_type", "truncate_dim"}
    if unknown := settings.keys() - keys:
        raise NotPlainError(f"{SETTINGS} has {min(unknown)}")
    if settings.get("model_type") not in (None, "SentenceTransformer"):
        raise NotPlainError("it is no encoder")
    if not all(isinstance(prompt, str) for prompt in prompts.values()) or default not in (None, *prompts):
        raise NotPlainError("its prompts are damaged")
    return {"prompts": prompts, "default": default, "truncate_dim": settings.get("truncate_dim")}


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """Return the kind and the folder of each module; a bare transformer is its own single module."""
    entries = modules_of(folder)
    if not entries:
        return [("Transformer", folder)]
    for entry in entries:
        if not entry.type.startswith("sentence_transformers.") or entry.arguments:
            raise NotPlainError(f"it has a module {entry.type}")
    modules = [(entry.type.rpartition(".")[2], folder / entry.path) for entry in entries]
    if modules[0][0] not in ("Transformer", "StaticEmbedding"):
        raise NotPlainError(f"it begins with {modules[0][0]}")
    return modules


def _static(
    folder: Path, behind: list[tuple[str, Path]]
) -> tuple[Tokenizer, Trunk, dict[str, Any], list[tuple[str, Path]]]:
    """Return tokenizer, trunk, facts for the description, and the later modules of a static model."""
    tokenizer = read_bare_tokenizer(folder)
    weights = Weights(folder / FILE)
    if set(weights.shapes) != {"embedding.weight"}:
        raise NotPlainError("its vectors are stored otherwise")
    rows, width = weights.shapes["embedding.weight"]
    truncation = tokenizer.truncation or {}
    if tokenizer.get_vocab_size() > rows or truncation.get("direction", "right") != "right":
        raise NotPlainError("its tokenizer has other tokens")
    facts = {
        "width": width,
        "max_tokens": truncation.get("max_length"),
        "pooling": "static mean",
        "special_tokens": False,
        "leaves_prompt_out": False,
    }
    return tokenizer, StaticMean(weights, "embedding.weight"), facts, behind


def _transformer(
    folder: Path, behind: list[tuple[str, Path]], chosen: PoolingName | None, *, bare: bool
) -> tuple[Tokenizer, Trunk, dict[str, Any], list[tuple[str, Path]]]:
    """Return tokenizer, trunk, facts for the description, and the later modules of a transformer."""
    config = read_settings(folder / "config.json")
    tokenizer, settings = read_tokenizer(folder)
    transformer = Transformer(config, Weights(folder / FILE))
    if tokenizer.get_vocab_size() > transformer.rows:
        raise NotPlainError("its tokenizer has other tokens")
    pooling, behind = _pooling(
        behind,
        transformer,
        chosen,
        bare=bare,
        hidden=bool(config.get("output_hidden_states")),
    )
    facts = {
        "width": transformer.width * len(pooling.modes),
        "max_tokens": min(_longest(folder, config, settings), transformer.positions),
        "pooling": pooling.name,
        "special_tokens": True,
        "leaves_prompt_out": not pooling.includes_prompt,
    }
    return tokenizer, PooledTransformer(transformer, pooling), facts, behind


def _longest(folder: Path, config: dict[str, Any], settings: dict[str, Any]) -> int:
    """Return the maximum number of tokens, from the settings of the module, the tokenizer or the transformer."""
    longest = None
    for path in folder.glob("sentence_*_config.json"):
        module_settings = read_settings(path)
        longest = module_settings.pop("max_seq_length", None)
        for key, value in module_settings.items():
            # Other settings are accepted where they are empty.
            if value is not None and value != _OF_TRANSFORMER.get(key, {}):
                raise NotPlainError(f"{path.name} has {key}")
    if longest is not None:
        return int(longest)
    limits = [settings.get("model_max_length"), config.get("max_position_embeddings")]
    return int(min(limit for limit in limits if limit is not None))


def _pooling(
    behind: list[tuple[str, Path]], transformer: Transformer, chosen: PoolingName | None, *, bare: bool, hidden: bool
) -> tuple[Pooling, list[tuple[str, Path]]]:
    """Return the pooling and the modules after it."""
    width = transformer.width
    depth = transformer.depth
    if chosen is not None or bare:
        # The chosen pooling takes the place of the model's own and its layer weights; the rest stays.
        layers = [module for module in behind if module[0] not in ("Pooling", "WeightedLayerPooling")]
        return chosen_pooling(chosen or "mean", depth), layers
    layer_folder = None
    if behind[0][0] == "WeightedLayerPooling":
        layer_folder = behind[0][1]
        behind = behind[1:]
    if not behind or behind[0][0] != "Pooling":
        raise NotPlainError("no pooling follows its transformer")
    pooling = read_pooling(read_settings(behind[0][1] / "config.json"), width)
    if layer_folder is not None:
        layer_weights, start = read_layers(layer_folder, read_settings(layer_folder / "config.json"), depth)
        if not hidden:
            raise NotPlainError("it weighs layers that it does not give")
        pooling.weigh(layer_weights, start, depth)
    return pooling, behind[1:]


def _maps(behind: list[tuple[str, Path]], width: int) -> tuple[list[Map], int]:
    """Return the modules after the pooling as functions, and the dimensions of the last one's output."""
    maps = []
    for kind, folder in behind:
        config: dict[str, Any] = {}
        with suppress(NotPlainError):  # some modules have no config.json
            config = read_settings(folder / "config.json")
        apply, width = read_map(kind, folder, config, width)
        maps.append(apply)
    return maps, width
