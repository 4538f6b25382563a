"""Holds anchors out of training, whose positives a model should find, or texts, whose classes it should tell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from samesense.data.pairs.keys import Groups, components, group_equal, plain_keys
from samesense.data.pairs.splits import choose_held_out
from samesense.data.sampling import count_to_hold_out, draw_positions, shuffle_within_classes
from samesense.data.tuples.data import HeldOutAnchors, HeldOutTexts, TupleData
from samesense.errors import DataError
from samesense.failures import excerpt

SHARE = 0.1
"""Share of the anchors that is held out if there are many."""

MOST_SHARE = 0.2
"""Largest share that is held out if there are few."""

ENOUGH = 100
"""Anchors to hold out if :data:`SHARE` gives fewer; the share then grows up to :data:`MOST_SHARE`."""

FEWEST = 20
"""Fewest held-out anchors of a verdict, as of pairs."""

MOST = 500
"""Most anchors that are held out."""

MOST_CANDIDATES = 2_000
"""Most texts among which a positive is to be found, as each is encoded by both models."""

MARGIN = 1.25
"""Anchors that share texts stay together, so that a few more may be held out: at most by this factor."""


def hold_out_tuples(data: TupleData, seed: int, share: float | None = None) -> TupleData:
    """Return what to train on: anchors, or texts with classes, with those that are held out as ``held_out``.

    That is the ``share`` that a user asks for, or else a tenth of many, and up to a fifth of few.
    """
    if data.classes is None:
        return hold_out_anchors(data, seed, share)
    return hold_out_texts(data, data.classes, seed, share)


def _count_to_hold_out(count: int, share: float | None) -> int:
    """Return how many of some anchors or texts are held out; 0 where these would be fewer than :data:`FEWEST`."""
    if share is None:
        return count_to_hold_out(count, share=SHARE, most_share=MOST_SHARE, enough=ENOUGH, fewest=FEWEST, most=MOST)
    target = round(share * count)
    return target if target >= FEWEST else 0


def _describe_larger_share(count: int, share: float | None) -> str:
    """Return the share that would hold out enough of few anchors or texts, as advice.

    Nothing if that is over half, or no more than the ``share`` that was asked for.
    """
    enough = math.ceil(20 * FEWEST / max(1, count)) / 20
    if enough > 0.5 or (share is not None and share >= enough):
        return ""
    return f', or hold out more of these: `test` "hold {enough:g}"'


def _largest_part(share: float | None) -> str:
    return "a fifth at most" if share is None else f"and {share:g} of them are asked for"


def with_test(train: TupleData, test: TupleData) -> TupleData:
    """Return training data with a test of their kind as ``held_out``; DataError if it asks for what they lack."""
    if train.classes is not None:
        unknown = sorted({*test.labels} - {*train.labels})
        if unknown:
            raise DataError(
                f"{test.source}: {excerpt(', '.join(unknown))} is among its classes, and not among those of "
                f"{train.source}, so that its texts could never be right. Take them out, or train on such texts."
            )
        return replace(train, held_out=HeldOutTexts(data=test, is_test=True))
    rows = [row for row, positives in enumerate(test.positives) if positives]
    left_out = test.left_out | {"anchors without a positive": len(test) - len(rows)}
    data = replace(test.take(rows), left_out=left_out)
    candidates = tuple(dict.fromkeys(chain.from_iterable([*data.positives, *data.negatives])))
    description = f"each to find its positives among {len(candidates):,} texts"
    return replace(
        train, held_out=HeldOutAnchors(data=data, candidates=candidates, description=description, is_test=True)
    )


def hold_out_texts(data: TupleData, classes: Mapping[str, int], seed: int, share: float | None = None) -> TupleData:
    """Return the texts with classes to train on, with those that are held out as ``held_out``.

    Of each class about the same share is held out, and one text of it at least is trained on.
    """
    target = _count_to_hold_out(len(data), share)
    chosen = _draw_of_each_class([classes[text] for text in data.anchors], target, seed)
    if len(chosen) < FEWEST:
        reason = (
            f"a verdict takes {FEWEST} texts held out, {_largest_part(share)}, of classes that leave others to learn "
            f"from; there are {len(data)} of {len(set(classes.values()))} classes. Give `test` FILE of such texts, or "
            f"of labelled pairs{_describe_larger_share(len(data), share)}"
        )
        return replace(data, held_out=HeldOutTexts(reason=reason))
    held_out = data.take(chosen)
    train = data.take(np.setdiff1d(np.arange(len(data)), chosen).tolist())
    absent = set(held_out.anchors)
    return replace(
        train,
        positives=[[text for text in positives if text not in absent] for positives in train.positives],
        classes={text: number for text, number in classes.items() if text not in absent},
        held_out=HeldOutTexts(data=held_out, whole=data),
    )


def _draw_of_each_class(classes: Sequence[int], target: int, seed: int) -> list[int]:
    """Return ``target`` positions in ascending order, of each class its share; fewer where a class would be empty."""
    numbers = np.array(classes, dtype=np.intp)
    # Evenly spaced over the sorted classes, so that a class of three has a draw where its turn comes.
    spaced = [int((step + 0.5) * len(numbers) / target) for step in range(target)]
    chosen = shuffle_within_classes(numbers, seed)[spaced]
    kept = set(numbers[np.setdiff1d(np.arange(len(numbers)), chosen)].tolist())
    return sorted(row for row in chosen.tolist() if numbers[row] in kept)


def hold_out_anchors(data: TupleData, seed: int, share: float | None = None) -> TupleData:
    """Return the anchors to train on, with those that are held out as ``held_out``.

    Neither a held-out anchor nor a positive of it is a training anchor or positive. Where too many anchors share
    their positives, such as questions with the same answer, the anchor alone is not.
    """
    rows = [row for row, positives in enumerate(data.positives) if positives]
    target = _count_to_hold_out(len(rows), share)
    if target:
        # Apart from training are the positives too, or else the anchors alone.
        for apart in (True, False):
            chosen = _choose_rows(data, rows, target, seed, positives_too=apart)
            distinct = {text for row in chosen for text in data.positives[row]}
            # To find one of a few texts is too easy; where the anchors alone are apart, all positives are ranked.
            if len(chosen) >= FEWEST and (len(distinct) >= FEWEST or not apart):
                return _split_off(data, chosen, seed, apart=apart)
    reason = (
        f"a verdict takes {FEWEST} anchors held out, {_largest_part(share)}, and there are {len(rows)} with a "
        "positive. Give `test` FILE of such anchors, or of labelled pairs, which `samesense label` makes"
        f"{_describe_larger_share(len(rows), share)}"
    )
    return replace(data, held_out=HeldOutAnchors(reason=reason))


def _choose_rows(data: TupleData, rows: Sequence[int], target: int, seed: int, *, positives_too: bool) -> list[int]:
    """Return the rows to hold out, in their order: whole groups that share an anchor, or a positive too."""
    pairs = [(row, text) for row in rows for text in data.positives[row]]
    anchors = [data.anchors[row] for row, _ in pairs]
    positives = [text for _, text in pairs]
    groups: Groups
    if positives_too:
        groups = components(plain_keys(anchors), plain_keys(positives))
    else:
        groups = group_equal(plain_keys(anchors))
    # An anchor counts by its positives, as a group has whole anchors.
    pair_target = round(target * len(pairs) / len(rows))
    flags = choose_held_out(
        anchors, positives, [0.0] * len(pairs), groups, pair_target, int(MARGIN * pair_target), seed
    )
    return sorted({row for (row, _), is_held_out in zip(pairs, flags, strict=True) if is_held_out})


def _split_off(data: TupleData, chosen: Sequence[int], seed: int, *, apart: bool) -> TupleData:
    """Return the anchors to train on, with the chosen ones held out."""
    remaining = np.setdiff1d(np.arange(len(data)), chosen)
    train = data.take(remaining.tolist())
    return replace(train, held_out=_with_candidates(data.take(chosen), train, seed, apart=apart))


def _with_candidates(held_out: TupleData, train: TupleData, seed: int, *, apart: bool) -> HeldOutAnchors:
    """Return held-out anchors with the texts to rank for each.

    Training moves its texts towards anchors in general, so that they would rank above other texts. The candidates are
    therefore all trained on, or none is: with ``apart`` none, otherwise all positives.
    """
    positives = dict.fromkeys(chain.from_iterable(held_out.positives))
    if apart:
        trained = {*train.anchors, *chain.from_iterable([*train.positives, *train.negatives])}
        distractors = [text for text in dict.fromkeys(chain.from_iterable(held_out.negatives)) if text not in trained]
    else:
        distractors = list(dict.fromkeys(chain.from_iterable(train.positives)))
    distractors = [text for text in distractors if text not in positives]
    room = max(0, MOST_CANDIDATES - len(positives))
    candidates = (*positives, *(distractors[index] for index in draw_positions(len(distractors), room, seed)))
    description = f"held out, each to find its positives among {len(candidates):,} texts"
    if not apart:
        description += "; these positives are trained on too, as anchors share them"
    return HeldOutAnchors(data=held_out, candidates=candidates, description=description)
