"""A calibration as a file in the folder of its model, refused for any other model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from shlex import quote

from pydantic import RootModel

from samesense.choices import Threshold, check_threshold_option
from samesense.encoder.names import DEFAULT, base_of, local_folder, resolve
from samesense.errors import ConfigError, ModelError
from samesense.files import write_json
from samesense.hashes import folder_hash
from samesense.inference.calibration.calibration import Calibration
from samesense.inference.names import split_kind
from samesense.inference.onnx.format import is_exported
from samesense.schemas import read_checked

FILE = "calibration.json"
ORIGIN_PARTS = ("origin.json", "corpus", "discriminator", "generator", "parts.npz")
"""What of an Origin decides scores; the rest is made of it."""

NOTES = (".md", ".png", ".svg")
"""Ends of files that decide no score."""


@dataclass(frozen=True)
class Home:
    """Where the files of a model are."""

    name: str  # as the user gave it
    folder: Path | None  # of the model, or of an Origin; None for a repository of the hub
    keeps: bool = True  # whether a calibration may be kept in the folder; not in that of a package

    @property
    def calibration_path(self) -> Path | None:
        """Where its calibration is kept; ``None`` if none can be."""
        if self.folder is not None and self.keeps:
            return self.folder / FILE
        return None

    @property
    def file(self) -> Path:
        """Where its calibration is kept; ConfigError if none can be."""
        if self.calibration_path is None:
            raise ConfigError(
                f"A calibration is kept in the model's folder, and {self.name!r} has none of its own. Name a file for "
                "it: `output` with calibrate, `calibration` where it is used."
            )
        return self.calibration_path

    def place(self, output: Path | None) -> Path:
        """Return where a calibration is to be written: ``output``, or else its :attr:`file`."""
        if output is None:
            return self.file
        folder = (self.folder or Path()).resolve()
        path = output.expanduser().resolve()
        if self.folder is not None and path.is_relative_to(folder) and _decides(folder, path):
            raise ConfigError(
                f"A file in the model's folder counts as part of the model, and {output} would make its calibrations "
                f"those of another. Leave `output` out (it is {FILE} then), or give a place outside {self.folder}."
            )
        return output

    def fingerprint(self) -> str:
        """Return a hash of every file that decides scores; of a repository of the hub, its commit; of adapters both.

        ModelError if a model of the hub has never been opened here.
        """
        if self.folder is None:
            return f"commit {_commit(self.name)}"
        folder_digest = f"sha256 {folder_hash(self.folder, _deciding(self.folder))}"
        base = base_of(self.folder)
        if base is None:
            return folder_digest
        return f"{folder_digest} on {home_of(base).fingerprint()}"


def home_of(name: str) -> Home:
    """Return where the files of a model folder, output of train, hub name, ``"default"``, or ``origin:FOLDER`` are.

    ConfigError if what is named has no files that identify it; ModelError if there is no such
    model.
    """
    kind, location = split_kind(name)
    if kind == "origin":
        return Home(name, Path(location).expanduser())
    path = Path(name).expanduser()
    if is_exported(name):
        return Home(name, path)
    if not path.exists() and (":" in name or "+" in name):
        raise ConfigError(
            f"A calibration belongs to the files of one model, which identify it; received {name!r}. "
            "Give a model folder, output of train, hub name, default, or origin:FOLDER."
        )
    source = Path(resolve(name))
    return Home(name, source if source.is_dir() else None, keeps=name != DEFAULT)


def _deciding(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and _decides(folder, path):
            yield path


def _decides(folder: Path, path: Path) -> bool:
    """Return whether a file in the folder of a model counts as part of it."""
    components = path.relative_to(folder).parts
    noted = path.suffix in NOTES or path.name == FILE or any(component.startswith(".") for component in components)
    is_origin = (folder / ORIGIN_PARTS[0]).is_file()
    return not noted and (not is_origin or components[0] in ORIGIN_PARTS)


def _commit(name: str) -> str:
    folder = local_folder(name)
    if folder is None:
        raise ModelError(f"The model {name!r} is not on this machine yet. Open it once, then calibrate it.")
    # In the cache of the hub a snapshot's folder is named by its commit.
    return folder.name


class StoredCalibration(RootModel[Calibration]):
    """The file of a calibration."""


def store(calibration: Calibration, path: Path) -> None:
    """Write a calibration; OutputError if it cannot be written."""
    write_json(path, asdict(calibration))


def read(home: Home, path: Path | None = None) -> Calibration:
    """Return the calibration of a model.

    It lies at ``path``, or in the model's own folder; ModelError if it is absent, damaged, or that of another model.
    """
    file = path or home.file
    if not file.is_file():
        raise ModelError(
            f"{home.name} has no calibration: there is no {file}. Fit one on labelled pairs: samesense calibrate "
            f"{quote(home.name)} --data dev.tsv"
        )
    calibration = read_checked(file, StoredCalibration, fix="Calibrate again.", error=ModelError).root
    if calibration.fingerprint != home.fingerprint():
        raise ModelError(
            f"{file} was fitted on the scores of other weights or settings than those of {home.name}, and would "
            f"mislead. Calibrate again: samesense calibrate {quote(home.name)} --data dev.tsv"
        )
    return calibration


def threshold_of(model: object, threshold: Threshold) -> float:
    """Return a threshold as a number; ConfigError if the calibrated one is asked for and the model has no name."""
    check_threshold_option(threshold)
    if not isinstance(threshold, str):
        return threshold
    return calibration_of(model).threshold()


def calibration_of(model: object) -> Calibration:
    """Return the calibration of a model; ConfigError if it is an object, and so has no name."""
    if not isinstance(model, str):
        raise ConfigError(
            f"A calibrated threshold is read by the name of its model; received a {type(model).__name__}. Give "
            "the name of the model, or a number."
        )
    return read_of(model)


def read_of(name: str, path: Path | None = None) -> Calibration:
    """Return the calibration of a model by its name; see :func:`home_of` and :func:`read`."""
    return read(home_of(name), path)
