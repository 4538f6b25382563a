"""The labelled pairs that are held out of training to select, and what is trained on of the pairs of dev and test."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import chain
from typing import get_args

import numpy as np

from samesense.data import PairData
from samesense.data.examples import Examples
from samesense.data.others import trained_on
from samesense.data.pairs.data import one_label
from samesense.data.pairs.keys import plain_keys
from samesense.data.pairs.parts import Apart
from samesense.data.sentences import Sentences
from samesense.data.tuples.data import TupleData
from samesense.errors import DataError
from samesense.recipes.mixed.data import Mixture

logger = logging.getLogger(__name__)

HELD_OUT_SHARE = 0.1
"""Share of labelled training pairs that is held out to choose the best checkpoint, where no dev set is given."""


def hold_out(train: Examples, seed: int) -> tuple[Examples, PairData | None]:
    """Split a dev set off the training data; none where they are no labelled pairs.

    A harvest has held out its own. Of data of several kinds, labelled pairs are split: scored ones, if there are any.
    """
    if isinstance(train, Mixture) and (part := train.labelled()) is not None:
        rest, dev = hold_out(part.data, seed)
        return train.with_data(part.name, rest), dev
    if not isinstance(train, PairData):
        return train, getattr(train, "dev", None)
    return hold_out_pairs(train, HELD_OUT_SHARE, seed)


def hold_out_pairs(train: PairData, share: float, seed: int) -> tuple[PairData, PairData]:
    """Split a share off labelled pairs for selection.

    No sentence stands in both parts. Where nearly all pairs hang together by their sentences, no pair does, and a
    warning says so. DataError if a part would have one label only.
    """
    for apart in get_args(Apart):
        parts = _split(train, share, seed, apart)
        if parts is not None and not any(one_label(part.labels) for part in parts):
            if apart == "pairs":
                logger.warning(
                    f"{train.name}: the pairs that are held out to select are {shared(parts[1], parts[0])}, so scores "
                    "on them are too high. Give `dev` FILE with pairs of other sentences"
                )
            return parts
    raise DataError(
        f"{train.source}: holding out {share:.0%} of {len(train)} pairs for selection leaves one label only on one "
        "side. Give a dev set, or `dev` none to keep the last state."
    )


def _split(train: PairData, share: float, seed: int, apart: Apart) -> tuple[PairData, PairData] | None:
    """Return both parts; ``None`` where too many pairs hang together by their sentences."""
    try:
        return train.split(share, seed, apart=apart)
    except DataError:
        if apart == "pairs":
            raise
        return None


def texts_of(data: Examples) -> Iterable[str]:
    """Return the texts of pairs, anchors or sentences; none of other data."""
    if isinstance(data, PairData):
        return chain(data.sentences1, data.sentences2)
    if isinstance(data, TupleData):
        return chain(data.anchors, (text for side in (data.positives, data.negatives) for own in side for text in own))
    return data.texts if isinstance(data, Sentences) else []


def met(other: PairData, train: Examples) -> tuple[int, int]:
    """Return how many sentences of some pairs are trained on, whatever their case and punctuation, and of how many."""
    sentences = np.unique(plain_keys(texts_of(other)))
    return len(np.intersect1d(sentences, plain_keys(texts_of(train)))), len(sentences)


def leaks(train: Examples, other: PairData, name: str) -> list[str]:
    """Return in words how many sentences of some pairs are trained on, and a warning if whole pairs are."""
    count, of = met(other, train)
    pairs = trained_on(other, train)
    said = [f"also in {name}: {count} of its {of} sentences, {pairs} of its {len(other)} pairs"]
    if pairs:
        said.append(f"warning: {pairs} pairs of {name} are trained on: a score on it would be inflated")
    return said


def shared(dev: PairData, train: Examples) -> str:
    """Return in words how many sentences of the pairs held out are trained on."""
    if not isinstance(train, PairData):
        return "of other pairs"
    count, of = met(dev, train)
    if not count:
        return "no sentence of which is trained on"
    return f"{count} of whose {of} sentences are also trained on, as the pairs hang together"
