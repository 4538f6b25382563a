"""Schemas of the JSON files in a model folder, checked before any library reads them; needs no torch.

Keys that are not listed here are passed to transformers and sentence-transformers unchecked.
"""

from __future__ import annotations

import re
from pathlib import Path, PureWindowsPath
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, RootModel, model_validator

from samesense.errors import ModelError
from samesense.schemas import Schema, read_checked

ADAPTERS = "adapter_config.json"
"""File that marks a folder with low-rank adapters; it names the base model."""

LONGEST_NAME = 255
"""Maximum length of a file name in bytes on common file systems."""

LONGEST_PATH = 1024
"""Maximum length of a path within a folder, in characters."""

DEEPEST_ROUTER = 8
"""Maximum nesting depth of routers."""

_FIX = "Take the file of the model as it was published, or save the model again."


def _inside(path: str) -> str:
    """Return a relative path unchanged; ValueError if it leads out of the folder on any operating system."""
    # The rules of Windows are the stricter ones: both slashes separate, and drives are anchors.
    parsed = PureWindowsPath(path)
    if parsed.anchor or ".." in parsed.parts or "\0" in path:
        raise ValueError("a path must stay in the model's folder")
    if len(path) > LONGEST_PATH or any(len(component.encode()) > LONGEST_NAME for component in parsed.parts):
        raise ValueError("a path is longer than a disk can hold")
    return path


Inside = Annotated[str, AfterValidator(_inside)]
Count = Annotated[int, Field(ge=1, lt=2**31)]
Width = Annotated[int, Field(ge=1, le=2**20)]
Heads = Annotated[int, Field(ge=1, le=2**16)]
Layers = Annotated[int, Field(ge=0, le=4096)]
ClassPath = Annotated[str, Field(pattern=r"^\w+(\.\w+)+$")]
Token = str | dict[str, JsonValue] | None


class _File(BaseModel):
    model_config = ConfigDict(
        strict=True, extra="allow", allow_inf_nan=False, protected_namespaces=(), defer_build=True
    )


class ModuleEntry(_File):
    """One module of ``modules.json``."""

    idx: int
    name: str
    path: Inside
    type: ClassPath
    arguments: Annotated[list[str], Field(alias="kwargs")] = []


class SentenceTransformersConfig(_File):
    """``config_sentence_transformers.json``."""

    model_type: str | None = None
    prompts: dict[str, str | None] = {}
    default_prompt_name: str | None = None
    similarity_fn_name: str | None = None
    truncate_dim: Width | None = None
    activation_fn: str | None = None


class TransformerSettings(_File):
    """``sentence_bert_config.json``."""

    max_seq_length: Annotated[int, Field(ge=1)] | None = None
    do_lower_case: bool | None = False
    transformer_task: str = ""
    modality_config: dict[str, JsonValue] | None = None
    module_output_name: str | None = None
    processing_kwargs: dict[str, JsonValue] | None = None
    unpad_inputs: bool | None = None
    query_length: Count | None = None
    document_length: Count | None = None
    query_expansion: dict[str, JsonValue] | None = None
    tokenizer_name_or_path: str | None = None


_NUMBER_OF_LAYERS = re.compile(r"(^|_)layers?$")


class TransformersConfig(_File):
    """``config.json`` of transformers: the keys that decide memory use, and those that are used here."""

    model_type: str | None = None
    architectures: list[str] | None = None
    transformers_weights: Inside | None = None
    hidden_size: Width | None = None
    intermediate_size: Width | list[Width] | None = None  # one number, or one per layer
    num_hidden_layers: Layers | None = None
    num_attention_heads: Heads | list[Heads] | None = None
    vocab_size: Annotated[int, Field(ge=1, le=2**27)] | None = None
    max_position_embeddings: Annotated[int, Field(ge=-1, le=2**27)] | None = None  # XLNet states -1
    num_labels: Annotated[int, Field(ge=0, le=2**20)] | None = None
    id2label: dict[str, JsonValue] | None = None

    @model_validator(mode="after")
    def _layers_of_other_names(self) -> TransformersConfig:
        # As n_layer of GPT-2 and encoder_layers of BART: an absurd depth would take all memory.
        for key, value in (self.model_extra or {}).items():
            if _NUMBER_OF_LAYERS.search(key) and isinstance(value, int) and value > 4096:
                raise ValueError(f"{key} must be at most 4096")
        return self


Mode = Literal["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]


class PoolingConfig(_File):
    """``config.json`` of a pooling."""

    embedding_dimension: Width | None = None
    word_embedding_dimension: Width | None = None
    pooling_mode: Mode | Annotated[list[Mode], Field(min_length=1)] = "mean"
    include_prompt: bool = True

    @model_validator(mode="after")
    def _flags(self) -> PoolingConfig:
        for key, value in (self.model_extra or {}).items():
            if key.startswith("pooling_mode_") and not isinstance(value, bool):
                raise ValueError(f"{key} must be true or false")
        return self


class DenseConfig(_File):
    """``config.json`` of a dense layer."""

    in_features: Width
    out_features: Width
    bias: bool = True
    activation_function: str | None = None

    @model_validator(mode="after")
    def _fits_into_memory(self) -> DenseConfig:
        if self.in_features * self.out_features > 2**30:
            raise ValueError("in_features times out_features must be at most 2**30")
        return self


class LayerWeightsConfig(_File):
    """``config.json`` of a pooling with layer weights."""

    num_hidden_layers: Layers = 12
    layer_start: Layers = 4


class ModuleConfig(_File):
    """Configuration of any other module: numbers are limited, as they may be sizes."""

    @model_validator(mode="after")
    def _numbers(self) -> ModuleConfig:
        for key, value in (self.model_extra or {}).items():
            if isinstance(value, int | float) and abs(value) > 2**20:
                raise ValueError(f"{key} must be at most 2**20")
        return self


class TokenizerConfig(_File):
    """``tokenizer_config.json``."""

    tokenizer_class: str | None = None
    # Without an upper bound, as transformers writes int(1e30) for a tokenizer without a limit.
    model_max_length: Annotated[int, Field(ge=1)] | Annotated[float, Field(ge=1, allow_inf_nan=True)] | None = None
    padding_side: Literal["left", "right"] = "right"
    truncation_side: Literal["left", "right"] = "right"
    pad_token: Token = None
    eos_token: Token = None
    bos_token: Token = None
    unk_token: Token = None
    sep_token: Token = None
    cls_token: Token = None
    mask_token: Token = None
    added_tokens_decoder: dict[str, dict[str, JsonValue]] = {}


class AdapterConfig(_File):
    """``adapter_config.json`` of peft."""

    base_model_name_or_path: str | None = None
    peft_type: str | None = None
    task_type: str | None = None
    r: Annotated[int, Field(ge=1, le=2**16)] | None = None
    lora_alpha: float | int | None = None
    lora_dropout: Annotated[float, Field(ge=0, le=1)] | None = None
    target_modules: list[str] | str | None = None
    modules_to_save: list[str] | None = None


class RouterParts(_File):
    """``router_config.json``."""

    types: dict[Inside, ClassPath]
    structure: dict[str, list[Inside]]


class WeightIndex(_File):
    """``model.safetensors.index.json`` and similar files: the shard of each weight."""

    weight_map: dict[str, Inside]


class Modules(RootModel[Annotated[list[ModuleEntry], Field(min_length=1, max_length=1000)]]):
    """``modules.json``."""


class SpecialTokens(RootModel[dict[str, str | dict[str, JsonValue] | list[JsonValue] | None]]):
    """``special_tokens_map.json``."""


class AddedTokens(RootModel[dict[str, Annotated[int, Field(ge=0, lt=2**31)]]]):
    """``added_tokens.json``."""


class Anything(_File):
    """Any JSON object."""


_SCHEMAS: dict[str, type[BaseModel]] = {
    "modules.json": Modules,
    "config_sentence_transformers.json": SentenceTransformersConfig,
    "config.json": TransformersConfig,
    "tokenizer_config.json": TokenizerConfig,
    "special_tokens_map.json": SpecialTokens,
    "added_tokens.json": AddedTokens,
    "generation_config.json": Anything,
    "processor_config.json": Anything,
    "preprocessor_config.json": Anything,
    ADAPTERS: AdapterConfig,
    "router_config.json": RouterParts,
    "model.safetensors.index.json": WeightIndex,
    "pytorch_model.bin.index.json": WeightIndex,
    "adapter_model.safetensors.index.json": WeightIndex,
    "adapter_model.bin.index.json": WeightIndex,
}
"""Schema of each file name in a folder that transformers reads; see also :data:`_OF_MODULES`."""

_OF_MODULES: dict[str, type[BaseModel]] = {
    "Pooling": PoolingConfig,
    "Dense": DenseConfig,
    "WeightedLayerPooling": LayerWeightsConfig,
}
"""Schema of ``config.json`` for each kind of module; for other modules it is :class:`ModuleConfig`."""

_TRANSFORMERS = ("Transformer", "CLIPModel", "MLMTransformer")
"""Modules whose ``config.json`` is that of transformers."""


def read_model_file(path: Path, schema: type[Schema]) -> Schema:
    """Return the content of a JSON file of a model folder; ModelError, naming file and key, if it is damaged."""
    return read_checked(path, schema, fix=_FIX, error=ModelError)


def modules_of(folder: Path) -> list[ModuleEntry]:
    """Return the modules of a model folder, of which a bare transformer has no list; ModelError if it is damaged."""
    path = folder / "modules.json"
    return read_model_file(path, Modules).root if path.is_file() else []


def check_model_files(folder: Path) -> None:
    """Check every JSON file of a model folder and its modules that a library will read.

    ModelError, naming file and key, if one is damaged or a path leads out of the folder.
    """
    _check_folder(folder, None)
    for entry in modules_of(folder):
        _check_module(folder / entry.path, entry.type)


def _check_module(folder: Path, type_: str, depth: int = 0) -> None:
    kind = type_.rsplit(".", 1)[1]
    _check_folder(folder, None if kind in _TRANSFORMERS else _OF_MODULES.get(kind, ModuleConfig))
    if kind == "Router" and (folder / "router_config.json").is_file():
        for path, module_type in read_model_file(folder / "router_config.json", RouterParts).types.items():
            if depth == DEEPEST_ROUTER or (folder / path).resolve() == folder.resolve():
                raise ModelError(f"{folder / 'router_config.json'}: a router must not hold itself. {_FIX}")
            _check_module(folder / path, module_type, depth + 1)


def _check_folder(folder: Path, config: type[BaseModel] | None) -> None:
    """Check the files of one folder; ``config`` is the schema of ``config.json`` if it is not that of transformers."""
    if not folder.is_dir():
        return
    for path in sorted(folder.glob("*.json")):
        schema = _schema(path.name)
        if config is not None and (
            path.name == "config.json" or (schema is None and path.name.endswith("config.json"))
        ):
            schema = config
        if schema is not None:
            read_model_file(path, schema)


def _schema(name: str) -> type[BaseModel] | None:
    if name.startswith("sentence_") and name.endswith("_config.json"):
        return TransformerSettings
    return _SCHEMAS.get(name)
