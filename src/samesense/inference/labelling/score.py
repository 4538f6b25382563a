"""Label pairs with anything that scores pairs: a cross-encoder, an Origin, a function, or a chat endpoint."""

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
"""Number of pairs that are scored and written at once."""


logger = logging.getLogger(__name__)


def label_all(pairs: Sequence[Pair], score: Score, labels: Labels) -> None:
    """Label the pairs that have no label yet; each label is on disk at once. Warn of answers that cannot be read.

    ModelError if ``score`` does not return one finite number a pair; errors that it raises are passed on.
    """
    unlabelled = [pair for pair in pairs if pair not in labels]
    # A chat model is asked pair by pair, and each answer is saved as it comes.
    if isinstance(score, Chat):
        answers = _one_by_one(unlabelled, score)
    else:
        answers = _in_blocks(unlabelled, score)
    unanswered = 0
    with progress_bar("label", "pair", len(pairs), initial=len(pairs) - len(unlabelled)) as bar:
        for answered in answers:
            labelled = [(pair, label) for pair, label in answered if label is not None]
            if labelled:
                labels.add(labelled)
            unanswered += len(answered) - len(labelled)
            bar.update(len(answered))
    if unanswered:
        logger.warning(f"{unanswered} pairs have no label, as no answer for them could be read")


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
