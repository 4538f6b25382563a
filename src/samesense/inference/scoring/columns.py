"""Which two columns of a table are compared, and which columns their scores become."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from samesense.data.formats.columns import TEXT_PAIRS, first_pair_of, listed, quoted, spelled_names
from samesense.data.formats.files import Row, text_problem
from samesense.data.formats.list_cells import refuse_lists
from samesense.data.formats.text_columns import (
    example_columns,
    find_text_columns,
    named_column,
    names_in,
    refuse_text,
)
from samesense.errors import ConfigError, DataError, ModelError
from samesense.inference.calibration.storage import Threshold, home_of, read

if TYPE_CHECKING:
    from samesense.inference.calibration.calibration import Calibration
    from samesense.inference.models.model import Model
    from samesense.types import Pair, Scores

logger = logging.getLogger(__name__)

SCORE = "score"
PROBABILITY = "probability"
VALUE = "value"
SAME = "same"
"""Names of the columns that a table gets."""

Values = dict[str, list[float | bool | None]]
"""What the new columns hold, by their names; nothing in rows without two texts."""


def text_columns(rows: Sequence[Row], columns: str | None, source: str) -> tuple[str, str]:
    """Return the two columns that are compared: those that are named, or with known names, or the only two of texts.

    A third name, as that of the labels where the model was trained, is left aside. DataError if none of this says
    which; ConfigError if not two or three different columns are named.
    """
    names = names_in(rows)
    if columns is not None:
        wanted = [name.strip() for name in columns.split(",")]
        if len(wanted) not in (2, 3) or len(set(wanted)) < len(wanted) or "" in wanted:
            raise ConfigError(
                f"{source}: `columns` names the two columns that are compared, first,second; received {columns!r}. "
                f"Its columns: {listed(names)}."
            )
        first, second = (named_column(names, name, source) for name in wanted[:2])
    else:
        first, second = _told_columns(rows, names, source)
    refuse_lists(rows, [first, second], source)
    return first, second


def _told_columns(rows: Sequence[Row], names: Sequence[str], source: str) -> tuple[str, str]:
    spelled = spelled_names(names)
    pair = first_pair_of(TEXT_PAIRS, spelled)
    if pair is not None:
        return spelled[pair[0]], spelled[pair[1]]
    texts = find_text_columns(rows)
    if len(texts) == 2:
        refuse_text(texts, source, rows)
        logger.info(f"{source}: the only columns of texts, {texts[0]} and {texts[1]}, are compared")
        return texts[0], texts[1]
    proposed = ",".join(example_columns(rows).split(",")[:2])
    raise DataError(
        f"{source}: two columns of texts are compared, and {len(texts) or 'none'} may be meant"
        f"{f': {listed(texts)}' if texts else ''}. Its columns: {listed(names)}. Name two: `columns` "
        f"{quoted(proposed) if proposed else 'FIRST,SECOND'}"
    )


def pair_of(cells: Mapping[str, object] | None, columns: tuple[str, str]) -> Pair | None:
    """Return the two texts of a row, ``None`` if one of them is missing, empty or no text."""
    if cells is None:
        return None
    first, second = (cells.get(name) for name in columns)
    if text_problem(first) or text_problem(second):
        return None
    return str(first), str(second)


@dataclass(frozen=True)
class ScoreColumns:
    """The columns that a table gets.

    Attributes:
        prefix: of their names.
        calibration: that of the model, if it has one.
        threshold: the score from which on two texts are the same; ``None`` if nothing says it.
    """

    prefix: str
    calibration: Calibration | None
    threshold: float | None

    @property
    def names(self) -> list[str]:
        """The names of the columns, in their order."""
        names = [SCORE]
        if self.calibration is not None:
            names.append(PROBABILITY if _is_probability(self.calibration) else VALUE)
        if self.threshold is not None:
            names.append(SAME)
        return [self.prefix + name for name in names]

    def check(self, names: Sequence[str], source: str) -> None:
        """Raise ConfigError if the table has a column of such a name, whatever its case."""
        taken = {name.strip().casefold() for name in names}
        clash = next((name for name in self.names if name.strip().casefold() in taken), None)
        if clash is not None:
            raise ConfigError(
                f"{source}: there is a column {clash!r}, and it is not written over. Put something before the names of "
                f"the new columns: `prefix` new_ makes new_{clash.removeprefix(self.prefix)}"
            )

    def values(self, pairs: Sequence[Pair | None], model: Model) -> Values:
        """Return what each new column holds, a value a row; nothing for rows without two texts."""
        positions = [row for row, pair in enumerate(pairs) if pair is not None]
        columns: Values = {name: [None] * len(pairs) for name in self.names}
        if not positions:
            return columns
        scores = model.scores([pair for pair in pairs if pair is not None])
        for name, values in zip(self.names, self._of_scores(scores), strict=True):
            for row, value in zip(positions, values, strict=True):
                columns[name][row] = value
        return columns

    def _of_scores(self, scores: Scores) -> list[list[float | bool]]:
        columns: list[list[float | bool]] = [np.round(scores.astype(np.float64), 6).tolist()]
        if self.calibration is not None:
            columns.append(np.round(self.calibration.apply(scores), 6).tolist())
        if self.threshold is not None:
            columns.append((scores >= self.threshold).tolist())
        return columns


def _is_probability(calibration: Calibration) -> bool:
    """Return whether calibrated values are probabilities: those of yes and no, by the error that was estimated."""
    return "brier" in calibration.errors


def score_columns(model: Model, threshold: Threshold | None, min_precision: float | None, prefix: str) -> ScoreColumns:
    """Return which columns a model gives, by its calibration and what is asked for.

    ModelError or ConfigError where a calibration is asked for and there is none, or none with such a threshold.
    """
    needed = threshold == "calibrated" or min_precision is not None
    calibration = _calibration(model, needed=needed or (model.home is not None and model.home[1] is not None))
    if min_precision is not None:
        return ScoreColumns(prefix, calibration, model.calibration.at_precision(min_precision))
    if isinstance(threshold, str):
        return ScoreColumns(prefix, calibration, model.calibration.threshold())
    if threshold is None and calibration is not None and calibration.yes is not None:
        threshold = calibration.threshold()
    return ScoreColumns(prefix, calibration, threshold)


def check_options(threshold: Threshold | None, min_precision: float | None) -> None:
    """Raise ConfigError for a threshold that is no number, one given twice, and for what is no precision."""
    if threshold is not None and min_precision is not None:
        raise ConfigError(
            f"A threshold is a number, or comes from a calibration; received `threshold` {threshold} and "
            "`min_precision`. Give one."
        )
    if threshold is not None and threshold != "calibrated":
        number = isinstance(threshold, int | float) and not isinstance(threshold, bool) and math.isfinite(threshold)
        if not number:
            raise ConfigError(f"`threshold` is a number, or calibrated; received {threshold!r}.")
    if min_precision is not None and not 0 < min_precision <= 1:
        raise ConfigError(
            f"A precision is above 0 and up to 1; received `min_precision` {min_precision}. Example: 0.95"
        )


def _calibration(model: Model, *, needed: bool) -> Calibration | None:
    """Return the calibration of a model if it has one; what is wrong with it is an error only where it is needed."""
    if needed:
        return model.calibration
    if model.home is None:
        return None
    name, path = model.home
    try:
        home = home_of(name)
        file = Path(path) if path is not None else home.kept
        return None if file is None or not file.is_file() else read(home, file)
    except ConfigError:  # of a model that has no files
        return None
    except ModelError as error:
        logger.warning(f"Scores are written without their meaning. {error}")
        return None
