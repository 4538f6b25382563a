"""Texts as training reads them: as ``encode`` does, and cut short where that is asked for."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import TrainerCallback, TrainerState

from samesense.encoder.forward.batching import tokenised
from samesense.encoder.forward.grad_cache import Features
from samesense.encoder.forward.reading import UnreadPairWatch, UnreadWatch
from samesense.execution.unread import Unread, note

logger = logging.getLogger(__name__)


class TrainingTexts:
    """Tokenises texts, or pairs, behind the model's default prompt, and counts how many were cut short.

    The model itself reads as many tokens as before, also when it is evaluated during training.

    Args:
        model: the model that is trained.
        max_length: longest input in tokens; ``None`` for the model's own, which is never exceeded.

    Attributes:
        given: texts so far.
        cut: those of them that lost tokens which the model would have read.
    """

    def __init__(self, model: SentenceTransformer | CrossEncoder, max_length: int | None = None) -> None:
        own = model.max_seq_length
        self.model = model
        self.max_length = None if max_length is None or (own is not None and own <= max_length) else max_length
        self.given = self.cut = 0
        self._watch = UnreadWatch(model) if isinstance(model, SentenceTransformer) else UnreadPairWatch(model)
        self._unread = Unread()
        self._pairs: set[int] = set()

    def __call__(self, texts: Sequence[Any], **_: Any) -> Features:
        """Return the features of the texts; what the trainer says of prompts and tasks does not count."""
        features = tokenised(self.model, texts, self.max_length)
        self.given += len(texts)
        self._count(texts, features)
        if self.max_length is not None and "attention_mask" in features:
            full = features["attention_mask"].sum(dim=1) >= self.max_length
            self.cut += self._longer([text for text, is_full in zip(texts, full.tolist(), strict=True) if is_full])
        return features

    def note_unread(self) -> None:
        """Count what the model does not read of the texts, each once; see :mod:`samesense.execution.unread`."""
        note(self._watch.unread if isinstance(self._watch, UnreadWatch) else self._unread, self.model)

    def _count(self, texts: Sequence[Any], features: Features) -> None:
        """Look for what is not read of texts or pairs."""
        if isinstance(self._watch, UnreadWatch):
            self._watch.look(texts, features)
            return
        self._watch.look(features)
        pairs = [pair for pair in dict.fromkeys(map(tuple, texts)) if hash(pair) not in self._pairs]
        self._unread.take(self._watch.unread(pairs))
        self._pairs.update(map(hash, pairs))

    def _longer(self, texts: list[Any]) -> int:
        """Return how many of the texts have a token more than the longest input."""
        if not texts:
            return 0
        mask = tokenised(self.model, texts, (self.max_length or 0) + 1)["attention_mask"]
        return int((mask.sum(dim=1) > self.max_length).sum())


class LogCut(TrainerCallback):
    """Logs after training how many texts were cut short; nothing where none was.

    Args:
        each: what tokenised the texts. One callback has them all, since a trainer warns of two of one class.
    """

    def __init__(self, *each: TrainingTexts) -> None:
        self.each = each

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Log it."""
        for texts in self.each:
            texts.note_unread()
            if texts.cut and state.is_world_process_zero:
                logger.info(
                    f"{texts.cut:,} of {texts.given:,} texts were cut to {texts.max_length} tokens in training; the "
                    f"model reads {texts.model.max_seq_length}, as before"
                )
