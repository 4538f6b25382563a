"""Tuples put into batches: every text that may be shared goes through the model once."""

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

logger = logging.getLogger(__name__)

EMPTY = -1
"""Stands where a tuple has no text."""


class TupleBatches:
    """Collator of examples that are row numbers: forms the tuples, and lists each text once.

    A batch is one text column ``texts`` and labels ``(batch, 3, places)``, of ``1 + positives + negatives`` places or
    more, a tuple a row with the anchor first: in the first layer which of the texts stands in each place, in the second
    a number that texts share if they count as the same, in the third, from its first place on, the numbers of the
    anchor's further positives; ``EMPTY`` where there is none.

    A copy of the anchor among its own positives is a text of its own where dropout is on, because its mask is all in
    which it differs. All other equal texts of a batch share one.

    Args:
        anchors: of all rows.
        complete: gives the positives and negatives of a row in an epoch.
        preprocess: tokenises texts, such as :class:`~samesense.training.texts.TrainingTexts` or the model's own method
            of this name, which leaves out its default prompt.
        places: how many positives and how many negatives a tuple has at most.
        key: gives texts that count as the same one number from 0.
        positives: all that each row has, also those that are not drawn.
        once: encode equal texts once; otherwise each text is encoded for itself.
        apart: copies of an anchor are encoded apart; see :func:`has_dropout`.

    Attributes:
        epoch: set by :class:`SetEpoch`.
        given: texts of all batches so far.
        encoded: texts that went through the model for them.
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
        self.anchors, self.complete, self.preprocess = anchors, complete, preprocess
        self.places, self.key, self.positives, self.once, self.apart = places, key, positives, once, apart
        self.epoch = 0
        self.given = self.encoded = 0
        self.valid_label_columns = ["label"]  # asked for by the trainer

    def __call__(self, examples: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Return the batch of some examples, of each of which the ``label`` is the number of its row."""
        further = [self._further(int(example["label"])) for example in examples]
        width = max(1 + sum(self.places), *map(len, further))
        labels = np.full((len(examples), 3, width), EMPTY, dtype=np.int64)
        texts: list[str] = []
        shared: dict[str, int] = {}
        for at, example in enumerate(examples):
            row = int(example["label"])
            labels[at, 2, : len(further[at])] = further[at]
            for place, text in self._tuple(row):
                own_copy = self.apart and 0 < place <= self.places[0] and text == self.anchors[row]
                number = shared.get(text) if self.once and not own_copy else None
                if number is None:
                    number = len(texts)
                    texts.append(text)
                    if not own_copy:
                        shared[text] = number
                labels[at, :2, place] = number, self.key(text)
        self.given += int((labels[:, 0] != EMPTY).sum())
        self.encoded += len(texts)
        features = {f"texts_{name}": value for name, value in self.preprocess(texts).items()}
        return {**features, "label": torch.from_numpy(labels)}

    def _further(self, row: int) -> list[int]:
        """Return the keys of the positives of a row, where it may have more than are drawn."""
        own = self.positives[row]
        return list(dict.fromkeys(map(self.key, own))) if len(own) > self.places[0] else []

    def _tuple(self, row: int) -> Iterable[tuple[int, str]]:
        """Return the texts of a tuple with their places."""
        positives, negatives = self.complete(row, self.epoch)
        after = enumerate(negatives, 1 + self.places[0])
        return chain([(0, self.anchors[row])], enumerate(positives, 1), after)


class SetEpoch(TrainerCallback):
    """Tells a collator which epoch begins; also when a run is resumed in the middle of one."""

    def __init__(self, batches: TupleBatches) -> None:
        self.batches = batches

    def on_epoch_begin(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Set the epoch."""
        self.batches.epoch = int((state.epoch or 0) + 1e-6)


class LogSavings(TrainerCallback):
    """Logs at the end of training which share of the texts did not have to go through the model."""

    def __init__(self, batches: TupleBatches) -> None:
        self.batches = batches

    def on_train_end(self, args: Any, state: TrainerState, control: Any, **kwargs: Any) -> None:
        """Log it; nothing if there was no batch."""
        given, encoded = self.batches.given, self.batches.encoded
        if given and state.is_world_process_zero:
            logger.info(f"equal sentences of a batch were encoded once, which saved {1 - encoded / given:.1%} of them")


def has_dropout(model: nn.Module) -> bool:
    """Return whether two passes of one text through ``model`` in training differ by dropout."""
    return any(
        isinstance(value, float) and value > 0
        for module in model.modules()
        for name, value in vars(module).items()
        if "dropout" in name or (name == "p" and isinstance(module, nn.modules.dropout._DropoutNd))
    )
