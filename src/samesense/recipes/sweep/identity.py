"""What tells cells apart: settings that decide figures, and models and files by their content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from samesense.encoder.names import base_of, resolve
from samesense.encoder.saving.card import RIGHTS
from samesense.hashes import folder_hash, source_hash
from samesense.inference.models.load import load
from samesense.inference.names import split_kind, split_maps
from samesense.recipes.context.settings import ContextSettings
from samesense.recipes.settings import EncoderSettings

APART = frozenset({"model", "teacher_cache", "teacher_dtype", "report", "report_to", *RIGHTS})
"""Settings that are no part of a cell's identity as they stand: the start model counts by its content; where, and in
how many digits, vectors of teachers are kept decides nothing that matters, nor does what is written of a run."""

OTHERWISE = frozenset({"teacher", "guide", "paraphraser", "origin", "origin_config", "trainer"})
"""Settings that count by content, or in part."""

FOLLOWED = ("logging_", "run_name", "project")
"""How fields of the trainer begin that say how a run is followed."""


def deciding(settings: EncoderSettings, fingerprints: dict[str, str]) -> dict[str, Any]:
    """Return the settings that decide the figures of a cell; models that teach count by their content."""
    dumped = settings.model_dump(exclude_defaults=True, exclude=set(APART))
    if "teacher" in dumped:
        dumped["teacher"] = [_teacher(name, fingerprints) for name in dumped["teacher"]]
    if "guide" in dumped:
        dumped["guide"] = _teacher(dumped["guide"], fingerprints)
    if "paraphraser" in dumped:
        dumped["paraphraser"] = source_hash(dumped["paraphraser"])
    if "trainer" in dumped:
        fields = dumped["trainer"].items()
        dumped["trainer"] = {name: value for name, value in fields if not name.startswith(FOLLOWED)}
        # Empty, it would still tell the cell from one without the setting.
        if not dumped["trainer"]:
            dumped.pop("trainer")
    if isinstance(settings, ContextSettings) and {"origin", "origin_config"} & dumped.keys():
        dumped["origin"] = _origin(settings)
        dumped.pop("origin_config", None)
    return dumped


def _origin(settings: ContextSettings) -> dict[str, Any]:
    """Return the settings of an Origin; the files that it reads count by their content."""
    origin = settings.origin_settings().model_dump(exclude_defaults=True)
    for name in ("word_vectors", "language_model"):
        if name in origin:
            origin[name] = source_hash(origin[name])
    if "texts" in origin:
        origin["texts"] = [source_hash(source) for source in origin["texts"]]
    return origin


def _teacher(name: str, fingerprints: dict[str, str]) -> str:
    """Return what tells a teacher from others: the content of a model or file, and the maps behind it."""
    base, maps = split_maps(name)
    if not split_kind(base)[0]:
        return fingerprint_of(base, fingerprints) + maps
    if base not in fingerprints:
        fingerprints[base] = load(base).identity
    return fingerprints[base] + maps


def fingerprint_of(model: str, fingerprints: dict[str, str]) -> str:
    """Return what tells a start model from others: a hash of its files, or its name on the hub; of adapters both."""
    if model not in fingerprints:
        folder = Path(resolve(model))
        paths = (path for path in sorted(folder.rglob("*")) if path.is_file() and _decides(path))
        identity = folder_hash(folder, paths) if folder.is_dir() else model
        base = base_of(folder)
        if base is not None:
            identity = f"{identity} on {fingerprint_of(base, fingerprints)}"
        fingerprints[model] = identity
    return fingerprints[model]


def _decides(path: Path) -> bool:
    return path.suffix != ".md" and not path.name.startswith(".")
