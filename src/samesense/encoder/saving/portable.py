"""Model folders that every reader opens: old and new sentence-transformers, transformers 4 and 5, and servers.

sentence-transformers before 5.4 hands each key of a module's configuration to its constructor, so one key too many
stops it. Newer versions read the older keys as well. So a folder has the older keys alone wherever they say all there
is to say, and the older class paths. transformers 4 knows neither the class that transformers 5 names in
``tokenizer_config.json`` nor where it keeps the rotation of positions, which it would silently replace by its default.
``tests/clients`` opens such folders in each of these.
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
"""Modes of pooling and their older keys, in the order in which readers of these concatenate several."""

_PLAIN_TRANSFORMER = {
    "transformer_task": "feature-extraction",
    "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
    "module_output_name": "token_embeddings",
}
"""What newer versions write of a transformer that reads text, and assume where it is not written."""

_DEFAULTS: dict[str, Any] = {
    "module_input_name": "sentence_embedding",
    "module_output_name": "sentence_embedding",
    "route_mappings": {},
}
"""Keys that older versions do not know, and the values that say nothing new."""

_IN_ROOT = (Transformer, Router, modules_of_encoders.CLIPModel)
"""First modules whose files older versions expect beside ``modules.json``; others have a folder."""

_OF_A_MACHINE = ("is_local", "local_files_only")
"""What transformers 5 notes in ``tokenizer_config.json`` of where the tokenizer came from."""

_ROTATIONS = {
    "gpt_neox": {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"},
    "gpt_neox_japanese": {"rope_theta": "rotary_emb_base", "partial_rotary_factor": "rotary_pct"},
}
"""Model types to what transformers 4 calls a rotation's keys, where that is not the same."""

_LAYERED_ROTATIONS = {
    "modernbert": {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"},
    "modernbert-decoder": {"full_attention": "global_rope_theta", "sliding_attention": "local_rope_theta"},
    "gemma3_text": {"full_attention": "rope_theta", "sliding_attention": "rope_local_base_freq"},
}
"""The like for model types that rotate differently in different layers."""


def make_portable(model: SentenceTransformer | CrossEncoder, folder: Path) -> None:
    """Rewrite a folder that sentence-transformers has just written, so that older readers open it too."""
    entries = _read(folder / "modules.json")
    for entry in entries:
        module = model[int(entry["idx"])]
        entry["type"] = _class_path(module, entry["type"])
        if entry["path"] == "" and not isinstance(module, _IN_ROOT):
            entry["path"] = _move(folder, entries, f"{entry['idx']}_{type(module).__name__}")
        _make_module_portable(module, folder / entry["path"])
    write_json(folder / "modules.json", entries)
    if isinstance(model, CrossEncoder):
        _write_activation(model, folder)


def _class_path(module: nn.Module, path: str) -> str:
    """Return the older path of a class that sentence-transformers has under it, another's own path otherwise."""
    name = type(module).__name__
    known = getattr(base_modules, name, None) or getattr(modules_of_encoders, name, None)
    return f"sentence_transformers.models.{name}" if known is type(module) else path


def _move(folder: Path, entries: list[dict[str, Any]], name: str) -> str:
    """Move the files of a first module into a folder of its own, and return its name."""
    kept = {"modules.json", "config_sentence_transformers.json", *(entry["path"].split("/")[0] for entry in entries)}
    (folder / name).mkdir()
    for path in list(folder.iterdir()):
        if path.name not in {*kept, name}:
            path.rename(folder / name / path.name)
    return name


def _make_module_portable(module: nn.Module, folder: Path) -> None:
    if isinstance(module, Router):
        _make_router_portable(module, folder)
    elif isinstance(module, Transformer):
        _write_transformer(module, folder)
    elif isinstance(module, Pooling):
        _write_pooling(module, folder / "config.json")
    else:
        _rename_keys(module, folder / getattr(module, "config_file_name", "config.json"))


def _make_router_portable(router: Router, folder: Path) -> None:
    path = folder / router.config_file_name
    content = _read(path)
    for route, names in content["structure"].items():
        for name, module in zip(names, router.sub_modules[route], strict=True):
            content["types"][name] = _class_path(module, content["types"][name])
            _make_module_portable(module, folder / name)
    content["parameters"] = _without_defaults(content["parameters"])
    write_json(path, content)


def _write_transformer(module: Transformer, folder: Path) -> None:
    path = folder / "sentence_bert_config.json"
    content = _read(path)
    if {key: content.get(key) for key in _PLAIN_TRANSFORMER} == _PLAIN_TRANSFORMER:
        content = {key: value for key, value in content.items() if key not in _PLAIN_TRANSFORMER}
    content.setdefault("max_seq_length", module.max_seq_length)
    content.setdefault("do_lower_case", False)
    write_json(path, content)
    _write_tokenizer(module.tokenizer, folder)
    _write_rotation(folder / "config.json")


def _write_pooling(pooling: Pooling, path: Path) -> None:
    """Write the older keys of a pooling, unless it concatenates in an order that they cannot say."""
    modes = [pooling.pooling_mode] if isinstance(pooling.pooling_mode, str) else list(pooling.pooling_mode)
    if modes != [mode for mode in POOLING_FLAGS if mode in modes]:
        return
    flags = {flag: mode in modes for mode, flag in POOLING_FLAGS.items()}
    known = {"word_embedding_dimension": pooling.embedding_dimension, **flags, "include_prompt": pooling.include_prompt}
    write_json(path, known)


def _rename_keys(module: nn.Module, path: Path) -> None:
    """Write the keys of a module under their older names, without those that say nothing new."""
    if not path.is_file():
        return
    older = {new: old for old, new in getattr(module, "config_key_renames", {}).items()}
    write_json(path, {older.get(key, key): value for key, value in _without_defaults(_read(path)).items()})


def _without_defaults(content: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in content.items() if key not in _DEFAULTS or value != _DEFAULTS[key]}


def _write_tokenizer(tokenizer: Any, folder: Path) -> None:
    """Have every version read ``tokenizer.json`` as it stands, by a class that all of them know.

    A class of a model rebuilds parts of the tokenizer by its own defaults, which differ from version to version.
    """
    path = folder / "tokenizer_config.json"
    plain = isinstance(tokenizer, PreTrainedTokenizerFast) and type(tokenizer).__module__.startswith("transformers.")
    if not plain or not path.is_file() or not (folder / "tokenizer.json").is_file():
        return
    content = {key: value for key, value in _read(path).items() if key not in _OF_A_MACHINE}
    content |= {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_input_names": list(tokenizer.model_input_names),
        "padding_side": tokenizer.padding_side,
        "truncation_side": tokenizer.truncation_side,
    }
    special = dict(tokenizer.special_tokens_map)
    if isinstance(content.get("extra_special_tokens"), list):
        more = {"additional_special_tokens": content.pop("extra_special_tokens")}
        content |= more
        special |= more
    write_json(path, content)
    write_json(folder / "special_tokens_map.json", special)


def _write_rotation(path: Path) -> None:
    """Say beside transformers 5's ``rope_parameters`` how transformers 4 is to rotate positions."""
    content = _read(path) if path.is_file() else {}
    rotation, kind = content.get("rope_parameters"), content.get("model_type", "")
    if not rotation:
        return
    if not any(isinstance(value, dict) for value in rotation.values()):
        write_json(path, content | _older_rotation(rotation, _ROTATIONS.get(kind, {})))
    elif names := _LAYERED_ROTATIONS.get(kind):
        write_json(path, content | _older_layers(rotation, names))
    else:
        logger.warning(
            "transformers before 5 cannot be told how a model of type %s rotates positions in different layers: "
            "opened there, it may give other vectors.",
            kind,
        )


def _older_rotation(rotation: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    separate = ("rope_theta", "partial_rotary_factor")
    known = {names.get(key, key): rotation[key] for key in separate if key in rotation}
    scaling = {key: value for key, value in rotation.items() if key not in separate}
    return known | ({} if scaling.get("rope_type", "default") == "default" else {"rope_scaling": scaling})


def _older_layers(rotation: dict[str, dict[str, Any]], names: dict[str, str]) -> dict[str, Any]:
    known: dict[str, Any] = {}
    for kind, name in names.items():
        known |= _older_rotation(rotation[kind], {"rope_theta": name})
    return known


def _write_activation(model: CrossEncoder, folder: Path) -> None:
    """Say in ``config.json`` how a logit becomes a score; versions before 5.4 else take a sigmoid."""
    name = f"{type(model.activation_fn).__module__}.{type(model.activation_fn).__name__}"
    path = folder / "config.json"
    if not name.startswith("torch.") or not path.is_file():
        return
    older = {"sbert_ce_default_activation_function": name, "sentence_transformers": {"activation_fn": name}}
    write_json(path, _read(path) | older)


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
