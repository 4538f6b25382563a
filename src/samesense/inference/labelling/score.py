"""Label pairs with anything that scores pairs: a cross-encoder, an Origin, a function, or a chat endpoint."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress

import numpy as np

from samesense.encoder.names import split_options
from samesense.errors import ConfigError, ModelError
from samesense.execution.progress import progress_bar
from samesense.hashes import text_hash
from samesense.inference.calibration.storage import home_of
from samesense.inference.labelling.file import Labels
from samesense.inference.models.chat import Chat
from samesense.inference.models.model import Model
from samesense.inference.names import split_kind, split_maps
from samesense.types import Pair, Score

BLOCK = 64
"""Number of pairs that are scored and written at once."""

DIGITS = 12
"""Digits of the hash that a name has."""


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
        answer = score(block)
        try:
            values = np.asarray(answer, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ModelError(f"A scorer gives one finite number a pair; it gave no numbers: {error}.") from error
        if values.shape != (len(block),) or not np.isfinite(values).all():
            raise ModelError(
                f"A scorer gives one finite number a pair, {len(block)} of them; it gave the shape {values.shape} with "
                f"{int((~np.isfinite(values)).sum())} that are not finite."
            )
        yield list(zip(block, values.tolist(), strict=True))


def name_scorer(model: Model) -> str:
    """Return the name of a model with the first digits of a hash of its content; of a function the name alone.

    A model that was trained again has the name that it had, and gives other labels.
    """
    content = _content(model)
    if not content:
        return model.name
    return f"{model.name}, content {text_hash(content)[:DIGITS]}"


def _content(model: Model) -> str:
    """Return a text that only models with the same scores share; ``""`` for a function, which has no content."""
    if model.home is not None:
        base = split_maps(model.home[0])[0]
        if split_kind(base)[0] in ("", "origin"):
            return home_of(split_options(base).base).fingerprint()
    if model.cross_encoder is not None:
        from samesense.encoder.saving.storage import weights_hash

        return weights_hash(model.cross_encoder)
    if model.embeds:
        with suppress(ConfigError):
            return model.identity
    return ""
