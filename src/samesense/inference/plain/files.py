"""A hash of the files of a model folder that its vectors depend on."""

from __future__ import annotations

from pathlib import Path

from samesense.encoder.model_files import modules_of
from samesense.encoder.names import resolve, split_options
from samesense.hashes import folder_hash
from samesense.inference.names import split_kind, split_maps

_SUFFIXES = (".json", ".safetensors", ".txt")
"""Suffixes of settings, weights and vocabularies; :mod:`.folder` reads no other files."""


def model_files_hash(name: str) -> str:
    """Return the SHA-256 of a model's files, equal only for models that give the same vectors in float32.

    It needs no torch. Files without influence on the vectors count too, so that folders with the same vectors may have
    different hashes. It is empty unless the model is a folder, and for a name with a pooling or maps, which no file
    holds.
    """
    base, maps = split_maps(name)
    if maps or split_kind(base)[0] or split_options(base) != (base, None, None):
        return ""
    folder = Path(resolve(base))
    if not folder.is_dir():
        return ""
    folders = {folder, *_module_folders(folder)}
    files = {
        path for directory in folders for path in directory.iterdir() if path.suffix in _SUFFIXES and path.is_file()
    }
    return folder_hash(folder, sorted(files))


def _module_folders(folder: Path) -> list[Path]:
    folders = [folder / entry.path for entry in modules_of(folder)]
    inside = folder.resolve()
    return [directory for directory in folders if directory.is_dir() and directory.resolve().is_relative_to(inside)]
