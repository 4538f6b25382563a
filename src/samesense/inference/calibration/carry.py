"""Carry a calibration over to an export of its model: refitted on the exported vectors, or unchanged."""

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
    """Give an exported folder the calibration of its model; return a message on what was done, "" if there is none.

    With labelled ``pairs`` the calibration is fitted again, with its own settings, on the scores of ``exported``, the
    float32 graph of the folder. Without pairs, or if they do not suffice, it is carried over unchanged, and its
    protocol then says how far the exported scores differ from those of torch. It is not carried over if it is of other
    weights, or if the pairs do not show its precision or recall for the exported vectors.
    """
    try:
        home = home_of(model)
        if home.calibration_path is None or not home.calibration_path.is_file():
            return ""
        fitted = read(home)
    except (ConfigError, ModelError) as error:
        return f"no calibration is carried over: {error}"
    home_of_export = Home(str(folder), folder)
    reason = "no labelled pairs were given"
    if pairs is not None:
        try:
            again = _refitted(fitted, home_of_export, exported, pairs)
        except PromiseError as error:
            return f"no calibration is carried over: {error}"
        except (ConfigError, DataError) as error:
            reason = str(error)
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
    return f"calibration: {message} ({reason})"


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
        # A promised precision or recall is passed on by the two fields below.
        decide=fitted.decide if fitted.decide in ("accuracy", "f1") else "accuracy",
        min_precision=fitted.least if fitted.decide == "precision" else None,
        min_recall=fitted.least if fitted.decide == "recall" else None,
        folds=fitted.folds,
        seed=fitted.seed,
    )


def _moved(before: Calibration, after: Calibration) -> str:
    """Return a message with both thresholds, where both calibrations have one."""
    if before.decide in before.thresholds and after.decide in after.thresholds:
        return f"; threshold {after.threshold():.4f}, with torch {before.threshold():.4f} on {before.data}"
    return ""
