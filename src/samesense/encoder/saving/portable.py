"""Model folders that every reader opens: old and new sentence-transformers, transformers 4 and 5, and servers.

sentence-transformers before 5.4 passes each key of a module's configuration to its constructor, so an unknown key is an
error; newer versions read the older keys as well. A folder therefore has only the older keys wherever they suffice, and
the older class paths. transformers 4 knows neither the class that transformers 5 names in ``tokenizer_config.json`` nor
its key for rotary positions (RoPE), whose values it would silently replace by defaults. ``tests/clients`` opens such
folders in each of these.
"""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import sentence_transformers.base.modules as base_modules
import sentence_transformers.sentence_transformer.modules as modules_of_encoders
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules import Router, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling
from torch import nn
from transformers import PreTrainedTokenizerFast

from samesense.files import write_json

logger = logging.getLogger(__name__)

POOLING_FLAGS = {
    "cls": "pooling_mode_cls_token",
    "max": "pooling_mode_max_tokens",
    "mean": "pooling_mode_mean_tokens",
    "mean_sqrt_len_tokens": "pooling_mode_mean_sqrt_len_tokens",
    "weightedmean": "pooling_mode_weightedmean_tokens",
    "lasttoken": "pooling_mode_lasttoken",
}
"""Pooling modes and their older keys, in the order in which older readers concatenate several modes."""

_PLAIN_TRANSFORMER = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
}
"""Keys that newer versions write for a text transformer, with the values that they assume by default."""

_DEFAULTS: dict[str, Any] = {
    "module_input_name": "sentence_embedding",
    "module_output_name": "sentence_embedding",
    "route_mappings": {},
}
"""Keys that older versions do not know, and their default values."""

_ROOT_MODULES = (Transformer, Router, modules_of_encoders.CLIPModel)
"""First modules whose files older versions expect beside ``modules.json``; other modules have a folder."""

_LOCAL_KEYS = ("is_local", "local_files_only")
"""Keys of ``tokenizer_config.json`` by which transformers 5 notes where the tokenizer was loaded from."""

_CALL_KEYS = ("max_length", "padding", "truncation", "truncation_strategy", "stride", "pad_to_multiple_of")
"""Keys of ``tokenizer_config.json`` by which transformers notes how ``tokenizer.json`` once cut and padded. A model
reads ``model_max_length`` tokens, but fastembed the smaller of that and ``max_length``."""

_OLDER_ROTATION_KEYS = {
    "gpt_neox": {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"},
    "gpt_neox_japanese": {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"},
}
"""Model types whose RoPE keys have other names in transformers 4, with these names."""

_OLDER_LAYERED_KEYS = {
    "modernbert": {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"},
    "modernbert-decoder": {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"},
    "gemma3_text": {"full_attention": "rope_theta", "sliding_attention": "rope_local_base_freq"},
}
"""The same for model types whose RoPE differs between kinds of layers."""


def make_portable(model: SentenceTransformer | CrossEncoder, folder: Path) -> None:
    """Rewrite a folder that sentence-transformers has just written, so that older readers open it too."""
    entries = _read_json(folder / "modules.json")
    for entry in entries:
        module = model[int(entry["idx"])]
        entry["type"] = _class_path(module, entry["type"])
        if entry["path"] == "" and not isinstance(module, _ROOT_MODULES):
            entry["path"] = _move_into_folder(folder, entries, f"{entry['idx']}_{type(module).__name__}")
        _rewrite_module(module, folder / entry["path"])
    write_json(folder / "modules.json", entries)
    if isinstance(model, CrossEncoder):
        _write_activation(model, folder)


def _class_path(module: nn.Module, path: str) -> str:
    """Return the older import path of a class of sentence-transformers; the path of any other class is unchanged."""
    name = type(module).__name__
    library_class = getattr(base_modules, name, None) or getattr(modules_of_encoders, name, None)
    if library_class is not type(module):
        return path
    return f"sentence_transformers.models.{name}"


def _move_into_folder(folder: Path, entries: list[dict[str, Any]], name: str) -> str:
    """Move the files of the first module into a subfolder ``name``, and return its name."""
    staying = {"modules.json", "config_sentence_transformers.json", *(entry["path"].split("/")[0] for entry in entries)}
    (folder / name).mkdir()
    for path in list(folder.iterdir()):
        if path.name not in {*staying, name}:
            path.rename(folder / name / path.name)
    return name


def _rewrite_module(module: nn.Module, folder: Path) -> None:
    if isinstance(module, Router):
        _rewrite_router(module, folder)
    elif isinstance(module, Transformer):
        _write_transformer(module, folder)
    elif isinstance(module, Pooling):
        _write_pooling(module, folder / "config.json")
    else:
        _rename_keys(module, folder / getattr(module, "config_file_name", "config.json"))


def _rewrite_router(router: Router, folder: Path) -> None:
    path = folder / router.config_file_name
    content = _read_json(path)
    for route, names in content["structure"].items():
        for name, module in zip(names, router.sub_modules[route], strict=True):
            content["types"][name] = _class_path(module, content["types"][name])
            _rewrite_module(module, folder / name)
    content["parameters"] = _without_defaults(content["parameters"])
    write_json(path, content)


def _write_transformer(module: Transformer, folder: Path) -> None:
    path = folder / "sentence_bert_config.json"
    content = _read_json(path)
    if {key: content.get(key) for key in _PLAIN_TRANSFORMER} == _PLAIN_TRANSFORMER:
        content = {key: value for key, value in content.items() if key not in _PLAIN_TRANSFORMER}
    content.setdefault("max_seq_length", module.max_seq_length)
    content.setdefault("do_lower_case", False)
    write_json(path, content)
    _write_tokenizer(module.tokenizer, folder)
    _write_rotation(folder / "config.json")


def _write_pooling(pooling: Pooling, path: Path) -> None:
    """Write the older keys of a pooling, unless it concatenates in an order that they cannot express."""
    if isinstance(pooling.pooling_mode, str):
        modes = [pooling.pooling_mode]
    else:
        modes = list(pooling.pooling_mode)
    if modes != [mode for mode in POOLING_FLAGS if mode in modes]:
        return
    flags = {flag: mode in modes for mode, flag in POOLING_FLAGS.items()}
    config = {
        "word_embedding_dimension": pooling.embedding_dimension,
        **flags,
        "include_prompt": pooling.include_prompt,
    }
    write_json(path, config)


def _rename_keys(module: nn.Module, path: Path) -> None:
    """Write the keys of a module under their older names, without default values."""
    if not path.is_file():
        return
    older = {new: old for old, new in getattr(module, "config_key_renames", {}).items()}
    write_json(path, {older.get(key, key): value for key, value in _without_defaults(_read_json(path)).items()})


def _without_defaults(content: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in _DEFAULTS or value != _DEFAULTS[key]}


def _write_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Name a tokenizer class that every version knows and that reads ``tokenizer.json`` as it is.

    A model's own class rebuilds parts of the tokenizer from its defaults, which differ between versions.
    """
    path = folder / "tokenizer_config.json"
    plain = isinstance(tokenizer, PreTrainedTokenizerFast) and type(tokenizer).__module__.startswith("transformers.")
    if not plain or not path.is_file() or not (folder / "tokenizer.json").is_file():
        return
    dropped = {*_LOCAL_KEYS, *_CALL_KEYS}
    content = {key: value for key, value in _read_json(path).items() if key not in dropped}
    content |= {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": list(tokenizer.model_input_names),
        "padding_side": tokenizer.padding_side,
        "truncation_side": tokenizer.truncation_side,
    }
    # transformers 4 reads additional special tokens under another name, and also from a second file
    special = dict(tokenizer.special_tokens_map)
    if isinstance(content.get("extra_special_tokens"), list):
        extra_tokens = {"additional_special_tokens": content.pop("extra_special_tokens")}
        content |= extra_tokens
        special |= extra_tokens
    write_json(path, content)
    write_json(folder / "special_tokens_map.json", special)


def _write_rotation(path: Path) -> None:
    """Write the RoPE keys of transformers 4 beside the ``rope_parameters`` of transformers 5."""
    content = _read_json(path) if path.is_file() else {}
    rotation = content.get("rope_parameters")
    kind = content.get("model_type", "")
    if not rotation:
        return
    if not any(isinstance(value, dict) for value in rotation.values()):
        write_json(path, content | _older_rotation(rotation, _OLDER_ROTATION_KEYS.get(kind, {})))
    elif names := _OLDER_LAYERED_KEYS.get(kind):
        write_json(path, content | _older_layers(rotation, names))
    else:
        logger.warning(
            "transformers before 5 cannot be told how a model of type %s rotates positions in different layers: "
            "opened there, it may give other vectors.",
            kind,
        )


def _older_rotation(rotation: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    separate = ("rope_theta", "partial_rotary_factor")
    older = {names.get(key, key): rotation[key] for key in separate if key in rotation}
    scaling = {key: value for key, value in rotation.items() if key not in separate}
    if scaling.get("rope_type", "default") == "default":
        return older
    return older | {"rope_scaling": scaling}


def _older_layers(rotation: dict[str, dict[str, Any]], names: dict[str, str]) -> dict[str, Any]:
    older: dict[str, Any] = {}
    for kind, name in names.items():
        older |= _older_rotation(rotation[kind], {"rope_theta": name})
    return older


def _write_activation(model: CrossEncoder, folder: Path) -> None:
    """Write the activation of the logit into ``config.json``: versions before 5.4 default to a sigmoid."""
    name = f"{type(model.activation_fn).__module__}.{type(model.activation_fn).__name__}"
    path = folder / "config.json"
    if not name.startswith("torch.") or not path.is_file():
        return
    older = {"sbert_ce_default_activation_function": name, "sentence_transformers": {"activation_fn": name}}
    write_json(path, _read_json(path) | older)


def _read_json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
