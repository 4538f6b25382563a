"""Choose the two columns of a table to compare, and compute the new columns."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from samesense.choices import Threshold, check_min_precision, check_threshold_option
from samesense.data.columns.guesses import example_columns
from samesense.data.columns.header_line import refuse_text
from samesense.data.columns.text_columns import describe_objects, find_text_columns, refuse_lists
from samesense.data.columns.unread_columns import warn_of_bytes
from samesense.data.conventions.column_names import TEXT_PAIRS, find_pair, spelled_names
from samesense.data.conventions.named_columns import join_columns, listed, named_column, quote_columns, split_columns
from samesense.data.conventions.texts import text_problem
from samesense.data.rows.load import names_in
from samesense.errors import ConfigError, DataError, ModelError
from samesense.inference.calibration.storage import home_of, read
from samesense.types import Row

if TYPE_CHECKING:
    from samesense.inference.calibration.calibration import Calibration
    from samesense.inference.models.model import Model
    from samesense.types import Pair, Scores

logger = logging.getLogger(__name__)

SCORE = "score"
PROBABILITY = "probability"
VALUE = "value"
SAME = "same"
"""Names of the new columns."""

Values = dict[str, list[float | bool | None]]
"""Values of the new columns by name; ``None`` in rows without two texts."""


def text_columns(rows: Sequence[Row], columns: str | None, source: str) -> tuple[str, str]:
    """Return the two columns to compare: those given in ``columns``, or with known names, or the only two with texts.

    A third column in ``columns``, such as that of the labels, is ignored. DataError if the columns cannot be
    determined; ConfigError if ``columns`` does not name two or three different ones.
    """
    names = names_in(rows)
    if columns is not None:
        requested = split_columns(columns)
        if len(requested) not in (2, 3) or len(set(requested)) < len(requested) or "" in requested:
            raise ConfigError(
                f"{source}: `columns` names the two columns that are compared, first,second; received {columns!r}. "
                f"Its columns: {listed(names)}."
            )
        first, second = (named_column(names, name, source) for name in requested[:2])
    else:
        first, second = _detect_columns(rows, names, source)
    refuse_lists(rows, [first, second], source)
    warn_of_bytes(rows, [first, second], source)
    return first, second


_MARKS = {",": "comma", ";": "semicolon", "|": "bar"}


def _detect_columns(rows: Sequence[Row], names: Sequence[str], source: str) -> tuple[str, str]:
    """Return the two columns with known names, or the only two that hold texts; DataError if there are none."""
    spelled = spelled_names(names)
    pair = find_pair(TEXT_PAIRS, spelled)
    if pair is not None:
        return spelled[pair[0]], spelled[pair[1]]
    texts = find_text_columns(rows)
    if len(texts) == 2:
        refuse_text(texts, source, rows)
        logger.info(f"{source}: the only columns of texts, {texts[0]} and {texts[1]}, are compared")
        return texts[0], texts[1]
    mark = next((mark for mark in _MARKS if len(names) == 1 and mark in names[0]), None)
    if mark is not None:
        raise DataError(
            f"{source}: two columns of texts are compared, and there is one, {names[0]!r}. Where it is two, name what "
            f"stands between them: `delimiter` {_MARKS[mark]}"
        )
    proposed = join_columns(split_columns(example_columns(rows))[:2])
    example = quote_columns(proposed) if proposed else "FIRST,SECOND"
    candidates = f"{len(texts)} may be meant: {listed(texts)}" if texts else "none may be meant"
    objects = describe_objects(rows)
    if objects:
        raise DataError(f"{source}: two columns of texts are compared, and {candidates}. By the first rows, {objects}")
    raise DataError(
        f"{source}: two columns of texts are compared, and {candidates}. Its columns: {listed(names)}. Name two: "
        f"`columns` {example}"
    )


def pair_of(cells: Mapping[str, object] | None, columns: tuple[str, str]) -> Pair | None:
    """Return the two texts of a row, ``None`` if one of them is missing, empty or not a text."""
    if cells is None:
        return None
    first, second = (cells.get(name) for name in columns)
    if text_problem(first) or text_problem(second):
        return None
    return str(first), str(second)


@dataclass(frozen=True)
class ScoreColumns:
    """The new columns of a table.

    Attributes:
        prefix: prefix of their names.
        calibration: calibration of the model, if it has one.
        threshold: the score from which on two texts are the same; ``None`` for no such column.
    """

    prefix: str
    calibration: Calibration | None
    threshold: float | None

    @property
    def names(self) -> list[str]:
        """The names of the new columns, in order."""
        names = [SCORE]
        if self.calibration is not None:
            names.append(PROBABILITY if _is_probability(self.calibration) else VALUE)
        if self.threshold is not None:
            names.append(SAME)
        return [self.prefix + name for name in names]

    def check(self, names: Sequence[str], source: str) -> None:
        """Raise ConfigError if the table has a column with one of the new names, ignoring case."""
        taken = {name.strip().casefold() for name in names}
        clash = next((name for name in self.names if name.strip().casefold() in taken), None)
        if clash is not None:
            raise ConfigError(
                f"{source}: there is a column {clash!r}, and it is not written over. Put something before the names of "
                f"the new columns: `prefix` new_ makes new_{clash.removeprefix(self.prefix)}"
            )

    def values(self, pairs: Sequence[Pair | None], model: Model) -> Values:
        """Return the values of the new columns, one a row; ``None`` for rows without two texts."""
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
        # In float64, since a rounded float32 would be written with more digits again.
        columns: list[list[float | bool]] = [np.round(scores.astype(np.float64), 6).tolist()]
        if self.calibration is not None:
            columns.append(np.round(self.calibration.apply(scores), 6).tolist())
        if self.threshold is not None:
            # By the scores themselves, as a rounded one may cross the threshold.
            columns.append((scores >= self.threshold).tolist())
        return columns


def _is_probability(calibration: Calibration) -> bool:
    """Return whether calibrated values are probabilities, as those fitted on yes/no labels are."""
    return "brier" in calibration.errors  # the Brier score is computed for yes/no labels only


def score_columns(model: Model, threshold: Threshold | None, min_precision: float | None, prefix: str) -> ScoreColumns:
    """Return the new columns, by the model's calibration and the requested threshold.

    ModelError or ConfigError if a calibration is needed and there is none, or it lacks the threshold.
    """
    needed = threshold == "calibrated" or min_precision is not None
    # A file that the user has named must be there; that of the folder may be absent.
    calibration = _calibration(model, needed=needed or (model.home is not None and model.home[1] is not None))
    if min_precision is not None:
        return ScoreColumns(prefix, calibration, model.calibration.at_precision(min_precision))
    if isinstance(threshold, str):
        return ScoreColumns(prefix, calibration, model.calibration.threshold())
    if threshold is None and calibration is not None and calibration.yes is not None:
        threshold = calibration.threshold()
    return ScoreColumns(prefix, calibration, threshold)


def check_options(threshold: Threshold | None, min_precision: float | None) -> None:
    """Raise ConfigError for an invalid threshold, an invalid precision, or both at once."""
    if threshold is not None and min_precision is not None:
        raise ConfigError(
            f"A threshold is a number, or comes from a calibration; received `threshold` {threshold} and "
            "`min_precision`. Give one."
        )
    if threshold is not None:
        check_threshold_option(threshold)
    check_min_precision(min_precision)


def _calibration(model: Model, *, needed: bool) -> Calibration | None:
    """Return the calibration of a model, if it has one; a defect is an error if it is ``needed``, else a warning."""
    if needed:
        return model.calibration
    if model.home is None:
        return None
    name, path = model.home
    try:
        home = home_of(name)
        file = Path(path) if path is not None else home.calibration_path
        if file is None or not file.is_file():
            return None
        return read(home, file)
    except ConfigError:  # the model has no files
        return None
    except ModelError as error:
        logger.warning(f"Scores are written without their meaning. {error}")
        return None
