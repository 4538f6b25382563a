"""Labelled pairs held out of training to select or to test, and what dev and test share with the training data."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import NamedTuple, get_args

import numpy as np

from samesense.data import PairData
from samesense.data.columns.labels import has_one_label
from samesense.data.examples import Examples
from samesense.data.overlap import count_trained_pairs
from samesense.data.pairs.keys import plain_keys
from samesense.data.pairs.splits import Apart
from samesense.data.sentences import Sentences
from samesense.data.tuples.data import TupleData
from samesense.errors import ConfigError, DataError
from samesense.recipes.mixed.data import Mixture

logger = logging.getLogger(__name__)

HELD_OUT_SHARE = 0.1
"""Share of labelled training pairs that is held out to choose the best checkpoint, where no dev set is given."""

MOST_HELD_OUT_SHARE = 0.2
"""Share that is held out at most for the verdict too."""

HELD_OUT_PAIRS = 200
"""Pairs that are held out at least, where that is no larger share: fewer leave a wide interval."""

LEAST_HELD_OUT = 24
"""Pairs that are held out of very few, where that leaves half: a verdict takes 20, and groups may not add up."""

_HOLD = re.compile(r"hold (0?\.\d+)")
_SHARE = re.compile(r"0?\.\d*[1-9]\d*|[1-9]\d?%")


def parse_share(source: object, name: str) -> float | None:
    """Return the share of a ``"hold 0.2"``; ``None`` for any other source. ConfigError for a share that is none.

    ConfigError also for a share alone, as other libraries take it.
    """
    word = str(source) if isinstance(source, str | float) else ""
    if _SHARE.fullmatch(word) and not Path(word).exists():
        share = float(word.rstrip("%")) / (100 if word.endswith("%") else 1)
        raise ConfigError(
            f"`{name}` is data, or says what to hold out of the training data; received {source!r}. To hold out that "
            f'share: `{name}` "hold {share:g}"'
        )
    if not isinstance(source, str) or source.split()[:1] != ["hold"]:
        return None
    match = _HOLD.fullmatch(source)
    # A share of 0.0 matches the pattern.
    if match is None or not float(match[1]):
        raise ConfigError(
            f'{name} holds out a share of the training pairs below 1, as in {name} = "hold 0.1" for a tenth; received '
            f"{source!r}."
        )
    return float(match[1])


def share_for_verdict(train: Examples) -> float:
    """Return the share of labelled pairs that is held out to select and to test: a tenth, and of few pairs a fifth."""
    labelled = _labelled_pairs(train)
    count = 1 if labelled is None else max(1, len(labelled))
    fraction = min(MOST_HELD_OUT_SHARE, max(HELD_OUT_SHARE, HELD_OUT_PAIRS / count))
    if count * fraction < LEAST_HELD_OUT <= count / 2:
        return LEAST_HELD_OUT / count
    return fraction


def hold_out(
    train: Examples, seed: int, share: float = HELD_OUT_SHARE, name: str = "dev"
) -> tuple[Examples, PairData | None]:
    """Split dev or test, which ``name`` says, off the training data; none where they are no labelled pairs.

    A harvest has held out its own. Of data of several kinds, labelled pairs are split: scored ones, if there are any.
    """
    if isinstance(train, Mixture) and (component := train.labelled()) is not None:
        remaining, held = hold_out(component.data, seed, share, name)
        return train.with_data(component.name, remaining), held
    if not isinstance(train, PairData):
        return train, getattr(train, "dev", None)
    return hold_out_pairs(train, share, seed, name)


def hold_out_share(train: Examples, share: float, name: str, seed: int) -> tuple[Examples, PairData]:
    """Split the share off that a user asked for, as dev or test; ConfigError where there are no labelled pairs."""
    if _labelled_pairs(train) is not None:
        remaining, held = hold_out(train, seed, share, name)
        if held is not None:
            return remaining, held
    raise ConfigError(f"`{name}` holds out labelled pairs, and {train.name} has none. Give `{name}` FILE.")


def _labelled_pairs(train: Examples) -> PairData | None:
    """Return the pairs that can be held out."""
    if isinstance(train, Mixture):
        component = train.labelled()
        if component is None:
            return None
        pairs: PairData = component.data
        return pairs
    if isinstance(train, PairData):
        return train
    return None


def hold_out_pairs(train: PairData, share: float, seed: int, name: str = "dev") -> tuple[PairData, PairData]:
    """Split a share off labelled pairs, to select (``name`` dev) or to test.

    No sentence stands in both splits. Where nearly all pairs are connected by shared sentences, no pair does, and a
    warning says so. DataError if a split would have one label only.
    """
    # From the strictest on: apart by sentences, else by pairs alone.
    for apart in get_args(Apart):
        splits = _split_apart(train, share, seed, apart)
        if splits is not None and not any(has_one_label(split.labels) for split in splits):
            if apart == "pairs" and count_shared(splits[1], splits[0]).trained:
                logger.warning(
                    f"{train.name}: {len(splits[1])} pairs are held out, and {describe_shared(splits[1], splits[0])}: "
                    f"scores on them are too high. Give `{name}` FILE with pairs of other sentences"
                )
            return splits
    fix = f"Hold out another share, or give `{name}` FILE."
    if name == "dev":
        fix = "Give `dev` FILE, or `dev` none to keep the last state."
    raise DataError(
        f"{train.source}: holding out {share:.0%} of {len(train)} pairs leaves one label only on one side. {fix}"
    )


def _split_apart(train: PairData, fraction: float, seed: int, apart: Apart) -> tuple[PairData, PairData] | None:
    """Return both splits; ``None`` where too many pairs are connected by shared sentences."""
    try:
        return train.split(fraction, seed, apart=apart)
    except DataError:
        # Nothing laxer is left to try.
        if apart == "pairs":
            raise
        return None


def iterate_texts(data: Examples) -> Iterable[str]:
    """Return the texts of pairs, anchors or sentences; none of other data."""
    if isinstance(data, PairData):
        return chain(data.sentences1, data.sentences2)
    if isinstance(data, TupleData):
        return chain(
            data.anchors, (text for side in (data.positives, data.negatives) for texts in side for text in texts)
        )
    if isinstance(data, Sentences):
        return data.texts
    return []


class SharedSentences(NamedTuple):
    """How many distinct sentences of some pairs are trained on, and how many there are."""

    trained: int
    total: int


def count_shared(pairs: PairData, train: Examples) -> SharedSentences:
    """Count the sentences of ``pairs`` that are trained on, ignoring case and punctuation."""
    sentences = np.unique(plain_keys(iterate_texts(pairs)))
    trained = np.intersect1d(sentences, plain_keys(iterate_texts(train)))
    return SharedSentences(len(trained), len(sentences))


def describe_leaks(train: Examples, pair_data: PairData, name: str) -> list[str]:
    """Return in words how many sentences of some pairs are trained on, and a warning if whole pairs are."""
    sentences = count_shared(pair_data, train)
    pairs = count_trained_pairs(pair_data, train)
    lines = [
        f"also in {name}: {sentences.trained} of its {sentences.total} sentences, {pairs} of its {len(pair_data)} pairs"
    ]
    if pairs:
        lines.append(f"warning: {pairs} pairs of {name} are trained on: a score on it would be inflated")
    return lines


def describe_shared(dev: PairData, train: Examples) -> str:
    """Return in words how many sentences of the pairs held out are trained on."""
    if not isinstance(train, PairData):
        return "of other pairs"
    sentences = count_shared(dev, train)
    if not sentences.trained:
        return "none of their sentences is trained on"
    return (
        f"{sentences.trained} of their {sentences.total} sentences are also trained on, because the pairs share "
        "sentences"
    )
