"""A calibration that goes with its model into an export: fitted again on the exported vectors, or carried over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from samesense.data.pairs.data import PairData
from samesense.errors import ConfigError, DataError, ModelError, PromiseError
from samesense.inference.calibration.calibration import Calibration
from samesense.inference.calibration.fit import CalibrationSettings, calibrate
from samesense.inference.calibration.storage import Home, home_of, read, store
from samesense.inference.onnx.format import read_description
from samesense.types import Scorer


def carry(model: str, folder: Path, exported: Scorer, pairs: PairData | None) -> str:
    """Give an exported folder the calibration of its model, and return what was done in words; "" if it has none.

    On labelled ``pairs`` it is fitted again, with the settings that it was made with, on the scores of ``exported``:
    the folder by its float32 graph. Without pairs, or where these cannot fit it, it is carried over as it is: its
    protocol then says by how much the exported scores were measured to differ from those of torch. A calibration of
    other weights is left behind, and one whose precision or recall the pairs do not show of the exported vectors.
    """
    try:
        home = home_of(model)
        if home.kept is None or not home.kept.is_file():
            return ""
        fitted = read(home)
    except (ConfigError, ModelError) as error:
        return f"no calibration is carried over: {error}"
    home_of_export = Home(str(folder), folder)
    why = "no labelled pairs were given"
    if pairs is not None:
        try:
            again = _refitted(fitted, home_of_export, exported, pairs)
        except PromiseError as error:
            return f"no calibration is carried over: {error}"
        except (ConfigError, DataError) as error:
            why = str(error)
        else:
            store(again, home_of_export.file)
            message = f"calibration: fitted again on {again.n} pairs of {again.data} by the exported vectors"
            return message + _moved(fitted, again)
    moved = ", ".join(f"{backend} {parity.scores:.2g}" for backend, parity in read_description(folder).parity.items())
    message = f"carried over from torch; exported scores differ from its by at most {moved}"
    store(
        replace(fitted, fingerprint=home_of_export.fingerprint(), protocol=f"{fitted.protocol}; {message}"),
        home_of_export.file,
    )
    return f"calibration: {message} ({why})"


def _refitted(fitted: Calibration, home: Home, exported: Scorer, pairs: PairData) -> Calibration:
    if pairs.scale is not None and tuple(pairs.scale) != tuple(fitted.scale):
        raise ConfigError(
            f"the labels of {pairs.name} lie on {pairs.scale[0]:g}-{pairs.scale[1]:g}, and the calibration on "
            f"{fitted.scale[0]:g}-{fitted.scale[1]:g}"
        )
    return calibrate(exported, pairs, home.fingerprint(), _settings(fitted)).calibration


def _settings(fitted: Calibration) -> CalibrationSettings:
    """Return the settings that a calibration was made with."""
    return CalibrationSettings(
        shape=fitted.map.kind,
        yes=fitted.yes,
        decide=fitted.decide if fitted.decide in ("accuracy", "f1") else "accuracy",
        min_precision=fitted.least if fitted.decide == "precision" else None,
        min_recall=fitted.least if fitted.decide == "recall" else None,
        folds=fitted.folds,
        seed=fitted.seed,
    )


def _moved(before: Calibration, after: Calibration) -> str:
    """Return how the threshold moved, where both have one."""
    if before.decide in before.thresholds and after.decide in after.thresholds:
        return f"; threshold {after.threshold():.4f}, with torch {before.threshold():.4f} on {before.data}"
    return ""
