"""Labels by whatever scores pairs: a cross-encoder, an Origin, a function, or a chat endpoint."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

import numpy as np

from samesense.errors import ModelError
from samesense.execution.progress import progress_bar
from samesense.inference.labelling.file import Labels
from samesense.inference.models.chat import Chat
from samesense.types import Pair, Score

BLOCK = 64
"""Pairs that are scored, and written, at once."""


logger = logging.getLogger(__name__)


def label_all(pairs: Sequence[Pair], score: Score, labels: Labels) -> None:
    """Have those of the pairs labelled that have no label yet; warns where an answer could not be read.

    What is labelled is on disk at once. ModelError if a score is not one finite number a pair, and whatever the score
    raises.
    """
    wanted = [pair for pair in pairs if pair not in labels]
    answers = _one_by_one(wanted, score) if isinstance(score, Chat) else _in_blocks(wanted, score)
    left = 0
    with progress_bar("label", "pair", len(pairs), initial=len(pairs) - len(wanted)) as bar:
        for answered in answers:
            labelled = [(pair, label) for pair, label in answered if label is not None]
            if labelled:
                labels.add(labelled)
            left += len(answered) - len(labelled)
            bar.update(len(answered))
    if left:
        logger.warning(f"{left} pairs have no label, as no answer for them could be read")


def _one_by_one(pairs: Sequence[Pair], chat: Chat) -> Iterator[list[tuple[Pair, float | None]]]:
    for index, label in chat.answers(pairs):
        yield [(pairs[index], label)]


def _in_blocks(pairs: Sequence[Pair], score: Score) -> Iterator[list[tuple[Pair, float | None]]]:
    for start in range(0, len(pairs), BLOCK):
        block = list(pairs[start : start + BLOCK])
        values = np.asarray(score(block), dtype=np.float64)
        if values.shape != (len(block),) or not np.isfinite(values).all():
            raise ModelError(
                f"A scorer gives one finite number a pair, {len(block)} of them; it gave the shape {values.shape} with "
                f"{int((~np.isfinite(values)).sum())} that are not finite."
            )
        yield list(zip(block, values.tolist(), strict=True))
