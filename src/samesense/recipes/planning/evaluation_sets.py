"""The pairs that select and test a training: read, or held out of the training data."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import NamedTuple, cast

from samesense.data import PairData, read_pairs
from samesense.data.detected_kind import KIND_INFO
from samesense.data.examples import Examples
from samesense.data.kinds import detect_kind
from samesense.data.rows.sources import Source, name_of, rereadable
from samesense.data.tuples.convert import read_classes
from samesense.data.tuples.data import TupleData
from samesense.data.tuples.held_out import hold_out_tuples, with_test
from samesense.data.tuples.read import read_tuples
from samesense.errors import ConfigError, DataError
from samesense.recipes.held_out.sets import LEAST
from samesense.recipes.planning.dev_split import hold_out, hold_out_share, parse_share, share_for_verdict
from samesense.recipes.reading import Reading

logger = logging.getLogger(__name__)


class DevSplit(NamedTuple):
    """Training data and the pairs that select.

    Attributes:
        train: what is trained on.
        dev: the pairs that select, if any.
        held_out: whether these were held out of the training data.
    """

    train: Examples
    dev: PairData | None = None
    held_out: bool = False


def select_dev(dev: Source | None, train: Examples, seed: int, reading: Reading, *, sparing: bool) -> DevSplit:
    """Read the pairs that select, or hold them out of the training data.

    Of labelled pairs, ``sparing`` holds out a tenth; otherwise enough are held out for a verdict too.
    """
    fraction = parse_share(dev, "dev")
    if fraction is not None:
        return DevSplit(*hold_out_share(train, fraction, "dev", seed), held_out=True)
    if not (isinstance(dev, str) and dev == "auto"):
        return DevSplit(train, read_evaluation_pairs(dev, reading, "dev"))
    hold = hold_out if sparing else _hold_out_for_verdict
    remaining, pairs = hold(train, seed)
    return DevSplit(remaining, pairs, held_out=pairs is not None)


def _hold_out_for_verdict(train: Examples, seed: int) -> tuple[Examples, PairData | None]:
    """Split off what selects and tests; nothing of pairs that are too few for either."""
    if isinstance(train, PairData) and len(train) < LEAST:
        logger.warning(
            f"{train.name}: {len(train)} labelled pairs are too few to hold some out; all are trained on, and the last "
            f"state is kept. A verdict takes {LEAST}"
        )
        return train, None
    return hold_out(train, seed, share_for_verdict(train))


def select_test(test: Source | None, train: Examples, seed: int, reading: Reading) -> tuple[Examples, PairData | None]:
    """Return the training data and the test pairs: read, or held out; a test of anchors or classes is in the former."""
    share = parse_share(test, "test")
    if share is not None and isinstance(train, TupleData):
        return _hold_out_tuples(train, seed, share), None
    if share is not None:
        return hold_out_share(train, share, "test", seed)
    if test is not None:
        test = rereadable(test)
    tuples = _read_test_of_kind(test, train, reading)
    if tuples is None:
        return train, read_evaluation_pairs(test, reading, "test")
    return with_test(cast(TupleData, train), tuples), None


def _hold_out_tuples(train: TupleData, seed: int, share: float) -> TupleData:
    """Hold the share of anchors or texts out that a user asks for; ConfigError where it is too small for a verdict."""
    remaining = hold_out_tuples(train, seed, share)
    if remaining.held_out is not None and remaining.held_out.reason:
        raise ConfigError(f"{train.source}: {remaining.held_out.reason}.")
    return remaining


def _read_test_of_kind(test: Source | None, examples: Examples, reading: Reading) -> TupleData | None:
    """Return a test of anchors or of sentences with classes, where the training data are such; else ``None``."""
    if not isinstance(examples, TupleData) or test is None or isinstance(test, PairData):
        return None
    if isinstance(test, TupleData):
        return test if (test.classes is None) == (examples.classes is None) else None
    try:
        detected = detect_kind(test, reading.columns)
    except DataError:
        # A test of other columns than the training data: the reader of pairs, or of classes, names what it needs.
        if examples.classes is None:
            return None
        return read_classes(test, columns=reading.columns, drop_bad_rows=reading.drop_bad_rows)
    if examples.classes is not None and detected.kind == "classes":
        return read_classes(test, columns=detected.columns, drop_bad_rows=reading.drop_bad_rows)
    if examples.classes is None and detected.kind == "tuples":
        return read_tuples(test, columns=detected.columns, drop_bad_rows=reading.drop_bad_rows)
    return None


def read_evaluation_pairs(source: Source | None, reading: Reading, role: str) -> PairData | None:
    """Return labelled pairs that select or test; DataError for data of another kind."""
    if isinstance(source, PairData):
        return source
    if source is None or (isinstance(source, str) and source == "none"):
        return None
    source = rereadable(source)
    if reading.columns is None:
        detected = detect_kind(source)
        if detected.kind in ("classes", "tuples") and not detected.triplets:
            raise DataError(
                f"{name_of(source)}: `{role}` takes labelled pairs, and these are {KIND_INFO[detected.kind].what}, by "
                f"{detected.by}. Give pairs, or such data as `test` of a training on data of their kind."
            )
        if detected.kind == "pairs":
            reading = replace(reading, columns=detected.columns)
    return read_pairs(source, **vars(reading.for_evaluation(source)))
