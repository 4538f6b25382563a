"""Which servers and libraries read a model folder, and give the vectors that the model gives.

The rules are those of the readers' own parsers, read and not run:

    sentence-transformers   6.2, 4 and older
    TEI                     text-embeddings-inference 1.9.3: with an ONNX file (its CPU build), and without
    vLLM                    of August 2026, which looks for the older class paths
    Infinity                0.0.78, engine torch, on sentence-transformers 3

Source: TEI ``router/src/lib.rs`` (pooling, limits, prompts) and ``backends/ort/src/lib.rs`` (sizes that it asks for; an
    output ``sentence_embedding`` is taken as it is); vLLM ``transformers_utils/config.py``, ``get_pooling_config``;
    Infinity ``transformer/embedder/sentence_transformer.py``, ``encode_pre`` (texts are tokenised without a prompt).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from samesense.errors import ModelError
from samesense.inference.onnx.format import GRAPHS, is_exported

_LEGACY = "sentence_transformers.models."
_SERVED = {"Transformer", "Pooling", "Dense", "Normalize"}
"""Modules that servers compute; WeightedLayerPooling (first-last, last-2) is none of them."""

_POOLED = ("cls", "mean", "lasttoken")
"""How TEI and vLLM pool."""

_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}


@dataclass(frozen=True)
class Verdict:
    """Whether a reader gives the model's own vectors.

    Attributes:
        reader: its name.
        reads: the answer.
        reasons: what stands against it, or what the answer rests on.
    """

    reader: str
    reads: bool
    reasons: list[str]


@dataclass
class _Folder:
    """What the readers look at."""

    path: Path
    config: dict[str, Any]
    modules: list[dict[str, Any]]
    pooling: dict[str, Any]
    settings: dict[str, Any] | None
    prompt: str = ""
    kinds: list[str] = field(default_factory=list)

    def weights(self) -> list[str]:
        return [] if any(self.path.rglob("*.safetensors")) else ["there are no weights (*.safetensors)"]

    def modes(self) -> list[str]:
        """Poolings that are switched on, by either set of keys."""
        mode = self.pooling.get("pooling_mode")
        named = [mode] if isinstance(mode, str) else list(mode or [])
        return named or self.flagged()

    def flagged(self) -> list[str]:
        return [mode for flag, mode in _FLAGS.items() if self.pooling.get(flag) is True]

    def both_keys(self) -> list[str]:
        if {"pooling_mode_cls_token", "pooling_mode_mean_tokens"} <= set(self.pooling):
            return []
        return ["the pooling's config.json lacks the keys pooling_mode_cls_token and pooling_mode_mean_tokens"]

    def old_paths(self) -> list[str]:
        new = [module["type"] for module in self.modules if not str(module["type"]).startswith(_LEGACY)]
        return [f"modules.json names {new[0]}, where readers know {_LEGACY}*"] if new else []

    def unprompted(self) -> list[str]:
        return [f"it does not put the model's prompt {self.prompt!r} before texts"] if self.prompt else []

    def told(self, held: str) -> str:
        """Return what a verdict on TEI rests on, and the flag by which it learns of a prompt."""
        return f"{held}; start it with --default-prompt {self.prompt!r}, or it uses none" if self.prompt else held

    def unserved(self) -> list[str]:
        other = sorted(set(self.kinds) - _SERVED)
        return [f"it does not compute {', '.join(other)}"] if other else []


def compatibility(folder: str | Path) -> list[Verdict]:
    """Judge a sentence-transformers folder by the rules of its readers.

    Raises:
        ModelError: if the folder has no ``modules.json``, or a file in it is no JSON.
    """
    found = _read(Path(folder))
    rules: dict[str, Callable[[_Folder], tuple[list[str], str]]] = {
        "samesense without torch": _own,
        "sentence-transformers >= 5.4": _new_library,
        "sentence-transformers < 5.4": _old_library,
        "TEI, ONNX": _tei_onnx,
        "TEI, safetensors": _tei,
        "vLLM": _vllm,
        "Infinity, torch": _infinity,
    }
    verdicts = []
    for reader, rule in rules.items():
        against, held = rule(found)
        verdicts.append(Verdict(reader, not against, against or [held]))
    return verdicts


def _own(folder: _Folder) -> tuple[list[str], str]:
    exported = is_exported(folder.path)
    return ([] if exported else ["it has not been exported (samesense export)"]), "its graph was compared with torch"


def _new_library(folder: _Folder) -> tuple[list[str], str]:
    foreign = [one["type"] for one in folder.modules if not str(one["type"]).startswith("sentence_transformers.")]
    against = [f"module {foreign[0]} needs trust_remote_code"] if foreign else []
    return [*folder.weights(), *against], "it reads either set of keys and paths"


def _old_library(folder: _Folder) -> tuple[list[str], str]:
    against = [*folder.weights(), *folder.old_paths()]
    if "Pooling" in folder.kinds:
        against += folder.both_keys()
        if "word_embedding_dimension" not in folder.pooling:
            against.append("the pooling's config.json lacks word_embedding_dimension")
    return against, "class paths and pooling keys are the older ones too"


def _tei_common(folder: _Folder) -> list[str]:
    against = []
    if missing := [key for key in ("architectures", "model_type") if not folder.config.get(key)]:
        against.append(f"config.json lacks {' and '.join(missing)}")
    if not {"max_position_embeddings", "n_positions"} & set(folder.config):
        against.append("config.json lacks max_position_embeddings")
    if any(str(name).endswith("Classification") for name in folder.config.get("architectures") or []):
        against.append("config.json names a classifier")
    if not (folder.path / "tokenizer.json").is_file():
        against.append("there is no tokenizer.json")
    if folder.settings is not None and "max_seq_length" not in folder.settings:
        against.append("sentence_bert_config.json lacks max_seq_length")
    return against


def _tei_onnx(folder: _Folder) -> tuple[list[str], str]:
    against = _tei_common(folder)
    for keys in (("hidden_size", "n_embd"), ("num_hidden_layers", "n_layer")):
        if not set(keys) & set(folder.config):
            against.append(f"config.json lacks {keys[0]}, which it asks for")
    if not (is_exported(folder.path) and (folder.path / GRAPHS["onnx"]).is_file()):
        against.append("there is no graph that ends in sentence_embedding (samesense export)")
    held = folder.told("it takes the graph's sentence_embedding as it is, whatever the pooling")
    if _pooling_at(folder.path, "1_Pooling") is None:
        asks = "bert" not in str(folder.config.get("model_type", "")).lower()
    else:
        asks = not set(_POOLED) & set(folder.modes())
    return against, f"{held}; start it with --pooling mean, which it asks for and does not use then" if asks else held


def _tei(folder: _Folder) -> tuple[list[str], str]:
    against = [*folder.weights(), *_tei_common(folder), *folder.unserved()]
    if _pooling_at(folder.path, "1_Pooling") is None:
        against.append("it looks for the pooling in 1_Pooling, and takes the first token where there is none")
    else:
        against += folder.both_keys()
        if not set(folder.modes()) <= set(_POOLED):
            against.append(f"it pools by {', '.join(_POOLED)}; this model by {'+'.join(folder.modes())}")
    return against, folder.told("its pooling and limits are in the files it parses")


def _vllm(folder: _Folder) -> tuple[list[str], str]:
    against = [*folder.weights(), *folder.unserved(), *folder.unprompted()]
    if "Pooling" not in folder.kinds:
        against.append("it needs a pooling")
    else:
        against += folder.old_paths()
        flags = folder.flagged()
        if not flags:
            against.append("the pooling's config.json has none of the keys pooling_mode_*; it would choose by itself")
        elif not set(flags) <= set(_POOLED) or len(flags) > 1:
            against.append(f"it pools by one of {', '.join(_POOLED)}; this model by {'+'.join(flags)}")
    return against, "pooling and normalisation stand where it looks"


def _infinity(folder: _Folder) -> tuple[list[str], str]:
    against, _ = _old_library(folder)
    against += folder.unprompted()
    return against, "it opens the folder by an older sentence-transformers"


def _pooling_at(path: Path, name: str) -> dict[str, Any] | None:
    file = path / name / "config.json"
    return _json(file) if file.is_file() else None


def _read(path: Path) -> _Folder:
    if not (path / "modules.json").is_file():
        raise ModelError(
            f"Readers look for modules.json, and {path} has none. Save the model with sentence-transformers."
        )
    modules: list[dict[str, Any]] = _json(path / "modules.json")
    kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
    pooling: dict[str, Any] = {}
    for module, kind in zip(modules, kinds, strict=True):
        if kind == "Pooling":
            pooling = _pooling_at(path, module["path"]) or {}
    settings = path / "sentence_bert_config.json"
    config, library = path / "config.json", path / "config_sentence_transformers.json"
    return _Folder(
        path,
        _json(config) if config.is_file() else {},
        modules,
        pooling,
        _json(settings) if settings.is_file() else None,
        _default_prompt(_json(library)) if library.is_file() else "",
        kinds,
    )


def _default_prompt(config: dict[str, Any]) -> str:
    return str((config.get("prompts") or {}).get(config.get("default_prompt_name")) or "")


def _json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} must be a file of JSON: {error}") from error
