"""The interface of generators: the probability of a sentence, or of the text beside it, given the other two."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from samesense.context.corpus.corpus import Window
from samesense.errors import ModelError
from samesense.types import Floats, Indices

Kind = Literal["sentence", "left", "right", "continuation"]
"""The generated text: the sentence, the text before it, or the text after it, each given the other two.

A continuation is the text after the sentence, generated from the sentence alone.
"""

KINDS: tuple[Kind, ...] = ("sentence", "left", "right")
"""The kinds of the paper."""

RightGiven = Literal["both", "sentence"]
"""Condition of the right side's probability: the left side and the sentence, or the sentence alone."""


def kinds_of(right_given: RightGiven) -> tuple[Kind, ...]:
    """Return the kinds of the three generative terms of Eq. 3, in its order."""
    if right_given == "both":
        return KINDS
    return ("sentence", "left", "continuation")


Size = Literal["tiny", "small", "base", "large"]
"""Size of a generator that is trained from scratch."""

Reading = Literal["apart", "together"]
"""Whether its encoder reads each sentence by itself, or the whole source as one row."""


@dataclass(frozen=True)
class Cells:
    """Which sentence is scored in which context; cell *k* is ``sentences[rows[k]]`` in ``windows[columns[k]]``."""

    sentences: Sequence[str]  # scored as the centre of a window
    windows: Sequence[Window]  # the contexts; their own centres are ignored
    rows: Indices  # index of a sentence, (n,)
    columns: Indices  # index of a window, (n,)

    @classmethod
    def grid(cls, sentences: Sequence[str], windows: Sequence[Window]) -> Cells:
        """Return every sentence in every window, sentence by sentence."""
        rows, columns = np.divmod(np.arange(len(sentences) * len(windows), dtype=np.int64), max(1, len(windows)))
        return cls(sentences, windows, rows, columns)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, members: npt.NDArray[np.integer]) -> Cells:
        """Return some of the cells, in the order of ``members``."""
        return Cells(self.sentences, self.windows, self.rows[members], self.columns[members])


@dataclass(frozen=True)
class LogProbs:
    """Log probabilities of some cells by a generator."""

    totals: Floats  # log probability of the generated text in nats, (kinds, n)
    tokens: Indices  # number of its tokens for this generator, (kinds, n); at least 1

    @property
    def per_token(self) -> Floats:
        """The log probability per token, ``(kinds, n)``: Eq. 3's 1/|.| log p(.)."""
        return self.totals / self.tokens


class Generator(ABC):
    """Gives p(s | left, right), p(left | s, right), p(right | left, s) and, if it can, p(right | s).

    Source: Sun et al. 2022 (TACL), "Sentence Similarity Based on Contexts", section 3.2.2, Eq. 2.
    Differs: p(right | s) is not in the paper.
    """

    identity: str  # everything besides the texts that a probability depends on
    protocol: str  # the same in words, for results
    longest: int | None = None  # maximum tokens of a sentence; None for no limit

    def beyond(self, sentences: Sequence[str]) -> list[str]:
        """Return the sentences that are longer than the generator reads."""
        return []

    @abstractmethod
    def measure(self, cells: Cells, kinds: Sequence[Kind] = KINDS) -> LogProbs:
        """Return the log probabilities of all cells, one row for each of ``kinds``.

        Raises:
            DataError: if a window lacks the side to be generated.
            ModelError: if a number is not finite, or the model was not trained for one of ``kinds``.
        """


class NoGenerator(Generator):
    """A placeholder where all generative terms have weight 0, so that no generator is trained or loaded."""

    identity = "none"
    protocol = "no generator"

    def measure(self, cells: Cells, kinds: Sequence[Kind] = KINDS) -> LogProbs:
        """Raise ModelError: nothing can be measured."""
        raise ModelError(
            f"Without a generator there is no probability of {', '.join(kinds)}. Give these terms weight 0."
        )


def checked(measured: LogProbs, cells: Cells, kinds: Sequence[Kind]) -> LogProbs:
    """Return the log probabilities if all are finite; ModelError otherwise, naming the first cell."""
    broken = np.argwhere(~np.isfinite(measured.totals))
    if len(broken):
        kind, cell = broken[0]
        raise ModelError(
            f"A log probability must be finite; that of the {kinds[kind]} is {measured.totals[kind, cell]} for "
            f"{cells.sentences[cells.rows[cell]][:60]!r} in context {cells.windows[cells.columns[cell]].id} "
            f"({len(broken)} of {measured.totals.size}). The model may have diverged, or overflow in its precision."
        )
    return measured


def groups_of(keys: Indices) -> list[Indices]:
    """Return the members of each group of equal keys, groups by ascending key, members in ascending order."""
    if not len(keys):
        return []
    order = np.argsort(keys, kind="stable")
    edges = np.flatnonzero(np.diff(keys[order])) + 1
    return np.split(order, edges)


def batches_of(lengths: Sequence[int] | Indices, budget: int) -> Iterator[Indices]:
    """Yield batches of members, the longest first, whose padded size stays within ``budget``."""
    order = np.argsort(np.asarray(lengths), kind="stable")[::-1]
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        end = start + max(1, budget // longest)
        yield order[start:end]
        start = end
