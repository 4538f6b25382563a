"""Tokenisation of training texts, as in ``encode``, with an optional maximum length."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import TrainerCallback, TrainerState

from samesense.encoder.forward.batching import tokenize_texts
from samesense.encoder.forward.grad_cache import Features
from samesense.encoder.forward.reading import UnreadPairWatch, UnreadWatch
from samesense.execution.unread import Unread, note

logger = logging.getLogger(__name__)


class TrainingTexts:
    """Tokenises texts, or pairs, with the model's default prompt, and counts how many were truncated.

    The model's own maximum length does not change, so evaluation during training uses it.

    Args:
        model: the model that is trained.
        max_length: maximum input length in tokens; ``None`` for the model's own, which is never exceeded.

    Attributes:
        text_count: number of texts so far.
        truncated: number of them that lost tokens which the model would have read.
    """

    def __init__(self, model: SentenceTransformer | CrossEncoder, max_length: int | None = None) -> None:
        model_length = model.max_seq_length
        self.model = model
        if max_length is not None and model_length is not None and model_length <= max_length:
            max_length = None  # the model truncates by itself
        self.max_length = max_length
        self.text_count = 0
        self.truncated = 0
        if isinstance(model, SentenceTransformer):
            self._watch: UnreadWatch | UnreadPairWatch = UnreadWatch(model)
        else:
            self._watch = UnreadPairWatch(model)
        self._unread = Unread()
        self._pairs: set[int] = set()

    def __call__(self, texts: Sequence[Any], **_: Any) -> Features:
        """Return the features of the texts; prompts and tasks that the trainer passes are ignored."""
        features = tokenize_texts(self.model, texts, self.max_length)
        self.text_count += len(texts)
        self._count(texts, features)
        if self.max_length is not None and "attention_mask" in features:
            # Only texts that fill the length can be longer; they alone are tokenised again.
            at_limit = features["attention_mask"].sum(dim=1) >= self.max_length
            self.truncated += self._longer(
                [text for text, is_full in zip(texts, at_limit.tolist(), strict=True) if is_full]
            )
        return features

    def note_unread(self) -> None:
        """Count what the model does not read of the texts, each once; see :mod:`samesense.execution.unread`."""
        note(self._watch.unread if isinstance(self._watch, UnreadWatch) else self._unread, self.model)

    def _count(self, texts: Sequence[Any], features: Features) -> None:
        """Count what the model does not read of texts or pairs, each once."""
        if isinstance(self._watch, UnreadWatch):
            self._watch.look(texts, features)
            return
        self._watch.look(features)
        # Hashes are remembered, as the pairs of all epochs would fill the memory.
        pairs = [pair for pair in dict.fromkeys(map(tuple, texts)) if hash(pair) not in self._pairs]
        self._unread.take(self._watch.unread(pairs))
        self._pairs.update(map(hash, pairs))

    def _longer(self, texts: list[Any]) -> int:
        """Return how many of the texts have more tokens than the maximum length."""
        if not texts:
            return 0
        mask = tokenize_texts(self.model, texts, (self.max_length or 0) + 1)["attention_mask"]
        return int((mask.sum(dim=1) > self.max_length).sum())


class LogCut(TrainerCallback):
    """Logs after training how many texts were truncated, if any.

    Args:
        all_texts: the tokenisations to report. One callback has all of them, as a trainer warns of two callbacks of one
            class.
    """

    def __init__(self, *all_texts: TrainingTexts) -> None:
        self.all_texts = all_texts

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Log the numbers."""
        for texts in self.all_texts:
            texts.note_unread()
            if texts.truncated and state.is_world_process_zero:
                logger.info(
                    f"{texts.truncated:,} of {texts.text_count:,} texts were cut to {texts.max_length} tokens in "
                    f"training; the model reads {texts.model.max_seq_length}, as before"
                )
