"""Batches of tuples, in which equal texts are encoded only once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import TrainerCallback, TrainerState

from samesense.data.tuples.completion import Completed
from samesense.losses.tuples import EMPTY

logger = logging.getLogger(__name__)


class TupleBatches:
    """Collator of examples that are row numbers: it forms the tuples, and lists each text once.

    A batch is one text column ``texts`` and labels ``(batch, 3, places)`` with at least ``1 + positives + negatives``
    places; a row is a tuple, its anchor first. The first layer has the index of the text in each place; the second a
    key that is equal for texts that count as the same; the third, from its first place on, the keys of the anchor's
    other positives. Places without a text are ``EMPTY``.

    With dropout, a copy of the anchor among its own positives is encoded separately, as only the dropout mask makes it
    differ. All other equal texts of a batch are encoded once.

    Args:
        anchors: anchors of all rows.
        complete: returns the positives and negatives of a row in an epoch.
        preprocess: tokenises texts, such as :class:`~samesense.training.texts.TrainingTexts` or the model's own method
            of this name, which leaves out its default prompt.
        places: maximum numbers of positives and of negatives in a tuple.
        key: returns the key of a text, an integer from 0, equal for texts that count as the same.
        positives: all positives of each row, also those that are not drawn.
        once: encode equal texts once; otherwise encode every text separately.
        apart: encode copies of an anchor separately; see :func:`has_dropout`.

    Attributes:
        epoch: set by :class:`SetEpoch`.
        filled_slots: number of texts in all batches so far, equal ones included.
        encoded: number of texts that were encoded for them.
    """

    def __init__(
        self,
        anchors: Sequence[str],
        complete: Callable[[int, int], Completed],
        preprocess: Callable[[list[str]], Mapping[str, Any]],
        *,
        places: tuple[int, int],
        key: Callable[[str], int],
        positives: Sequence[Sequence[str]],
        once: bool = True,
        apart: bool = True,
    ) -> None:
        self.anchors = anchors
        self.complete = complete
        self.preprocess = preprocess
        self.places = places
        self.key = key
        self.positives = positives
        self.once = once
        self.apart = apart
        self.epoch = 0
        self.filled_slots = 0
        self.encoded = 0
        self.valid_label_columns = ["label"]  # the trainer reads this

    def __call__(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the batch of some examples, whose ``label`` is a row number."""
        extra_keys = [self._extra_keys(int(example["label"])) for example in examples]
        width = max(1 + sum(self.places), *map(len, extra_keys))
        labels = np.full((len(examples), 3, width), EMPTY, dtype=np.int64)
        texts: list[str] = []
        shared: dict[str, int] = {}
        for index, example in enumerate(examples):
            row = int(example["label"])
            labels[index, 2, : len(extra_keys[index])] = extra_keys[index]
            for slot, text in self._tuple(row):
                own_copy = self.apart and 0 < slot <= self.places[0] and text == self.anchors[row]
                text_index = None
                if self.once and not own_copy:
                    text_index = shared.get(text)
                if text_index is None:  # not in the batch yet, or to be encoded separately
                    text_index = len(texts)
                    texts.append(text)
                    if not own_copy:
                        shared[text] = text_index
                labels[index, :2, slot] = text_index, self.key(text)
        self.filled_slots += int((labels[:, 0] != EMPTY).sum())
        self.encoded += len(texts)
        features = {f"texts_{name}": value for name, value in self.preprocess(texts).items()}
        return {**features, "label": torch.from_numpy(labels)}

    def _extra_keys(self, row: int) -> list[int]:
        """Return the keys of all positives of a row, if it has more than a tuple takes."""
        positives = self.positives[row]
        if len(positives) <= self.places[0]:
            return []
        return list(dict.fromkeys(map(self.key, positives)))

    def _tuple(self, row: int) -> Iterable[tuple[int, str]]:
        """Return the places and texts of a tuple."""
        positives, negatives = self.complete(row, self.epoch)
        after = enumerate(negatives, 1 + self.places[0])
        return chain([(0, self.anchors[row])], enumerate(positives, 1), after)


class SetEpoch(TrainerCallback):
    """Sets a collator's epoch when an epoch begins, also when a run resumes in the middle of one."""

    def __init__(self, batches: TupleBatches) -> None:
        self.batches = batches

    def on_epoch_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Set the epoch."""
        # The trainer's epoch is a quotient of steps, which may fall just below a whole number.
        self.batches.epoch = int((state.epoch or 0) + 1e-6)


class LogSavings(TrainerCallback):
    """Logs at the end of training which fraction of the texts did not have to be encoded."""

    def __init__(self, batches: TupleBatches) -> None:
        self.batches = batches

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Log the fraction, if there was any batch."""
        total = self.batches.filled_slots
        encoded = self.batches.encoded
        if total and state.is_world_process_zero:
            logger.info(f"equal sentences of a batch were encoded once, which saved {1 - encoded / total:.1%} of them")


def has_dropout(model: nn.Module) -> bool:
    """Return whether two passes of one text through ``model`` in training differ by dropout."""
    return any(
        isinstance(value, float) and value > 0
        for module in model.modules()
        for name, value in vars(module).items()
        if "dropout" in name or (name == "p" and isinstance(module, nn.modules.dropout._DropoutNd))
    )
