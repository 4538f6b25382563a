"""``samesense similarity``: how alike are two texts?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from samesense.api import similarity as api
from samesense.choices import SimilarityBy, Threshold
from samesense.cli.command import command_of, reads_tables
from samesense.cli.output import Flag, Json, Text, put, put_json
from samesense.data.rows.delimited import read_fields
from samesense.data.rows.sources import warn_of_compared_names
from samesense.data.rows.text import standard_input
from samesense.errors import ConfigError, DataError
from samesense.types import Pair, Scores

if TYPE_CHECKING:
    from samesense.inference.calibration.calibration import Calibration
    from samesense.inference.models.model import Model


@reads_tables
@command_of(api.similarity)
def similarity(
    model: Text | None = None,
    text1: Text | None = None,
    text2: Text | None = None,
    /,
    *,
    origin: Path | None = None,
    calibrated: Flag = False,
    threshold: Threshold | None = None,
    calibration: Path | None = None,
    json: Json = False,
    **options: Any,
) -> None:
    """samesense similarity default "A man is eating." "Someone has a meal."

    Args:
        text1: first text; without texts, pairs are read from standard input, two texts a line with a tab between.
        text2: second text.
        origin: folder of an Origin, instead of a model; the same as the model origin:FOLDER.
        threshold: also print yes if the score is at least this, else no; calibrated takes the calibration's threshold.
        json: print JSON lines with both texts, the score, and the other requested values.
    """
    by = options["by"]
    if origin is not None:
        text1, text2 = _texts_of_an_origin(model, text1, text2)
        model = f"origin:{origin}"
    if model is None:
        raise ConfigError('similarity needs a model: samesense similarity MODEL "a" "b", or --origin FOLDER "a" "b".')
    pairs = _pairs_from_stdin() if text1 is None else [_checked_pair(text1, text2)]
    calibrated = calibrated or calibration is not None
    # imported after the checks above, as it takes a while
    from samesense.inference.models.load import load

    # A calibration was fitted to scores of whole texts.
    if by == "sentences":
        from samesense.inference.sentences import check_scale

        check_scale(calibrated=calibrated or threshold == "calibrated")
    scorer = load(model, precision=options["precision"], texts=[text for pair in pairs for text in pair])
    fitted = None
    if calibrated or threshold == "calibrated":
        from samesense.inference.calibration.storage import read_of

        fitted = read_of(model, calibration)
    lowest = _lowest_yes(threshold, fitted)
    scores = _scores(scorer, pairs, by)
    # A calibration may be there for its threshold alone.
    rows = _rows(scores, fitted if calibrated else None, lowest)
    if json:
        put_json({"text1": a, "text2": b, **row} for (a, b), row in zip(pairs, rows, strict=True))
        return
    for row in rows:
        put(_line(row))


def _rows(scores: Scores, fitted: Calibration | None, lowest: float | None) -> list[dict[str, Any]]:
    """Return the score of each pair, with its calibrated score and whether it is a yes, if these are asked for."""
    columns = {"score": np.round(scores, 6).tolist()}
    if fitted is not None:
        columns["calibrated"] = np.round(fitted.apply(scores), 6).tolist()
    if lowest is not None:
        columns["yes"] = (scores >= lowest).tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _lowest_yes(threshold: Threshold | None, fitted: Calibration | None) -> float | None:
    """Return the lowest score that is a yes: the given threshold, or that of the calibration."""
    if not isinstance(threshold, str):
        return threshold
    if fitted is None:
        return None
    return fitted.threshold()


def _scores(model: Model, pairs: list[Pair], by: SimilarityBy) -> Scores:
    if by == "whole":
        return model.scores(pairs)
    from samesense.inference.sentences import sentence_scores

    return sentence_scores(model, pairs)


def _texts_of_an_origin(first: str | None, second: str | None, third: str | None) -> tuple[str | None, str | None]:
    """Return the two texts where --origin names the model, so that the first argument is a text."""
    if third is not None:
        raise ConfigError(f"--origin replaces the model; received the model {first!r} too. Give one.")
    return first, second


def _line(row: dict[str, Any]) -> str:
    """Return the calibrated score, or else the score, and yes or no if there is a threshold."""
    value = f"{row.get('calibrated', row['score']):.4f}"
    if "yes" not in row:
        return value
    answer = "yes" if row["yes"] else "no"
    return f"{value}\t{answer}"


def _checked_pair(text1: str, text2: str | None) -> Pair:
    if text2 is None:
        raise DataError('similarity compares two texts; received one. Give both: samesense similarity MODEL "a" "b"')
    if not text1.strip() or not text2.strip():
        raise DataError("similarity compares two texts; one of them is empty.")
    warn_of_compared_names(text1, text2, "samesense similarity MODEL")
    return text1, text2


def _pairs_from_stdin() -> list[Pair]:
    pairs = []
    for number, fields in read_fields("standard input", standard_input(), 2):
        if len(fields) != 2 or not fields[0].strip() or not fields[1].strip():
            raise DataError(
                f"Each line must hold two texts with one tab between them; "
                f"standard input, row {number}, has {len(fields)} fields: {' '.join(fields)[:80]!r}."
            )
        pairs.append((fields[0], fields[1]))
    if not pairs:
        raise DataError("No pairs were given: neither two texts nor lines on standard input.")
    return pairs
