"""How probable is a text, given the other two parts of its surroundings? What every generator answers."""

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
"""What is generated from the other two: the sentence, the text before it, or the text after it.

A continuation is the text after the sentence, generated from the sentence alone.
"""

KINDS: tuple[Kind, ...] = ("sentence", "left", "right")
"""Those of the paper."""

RightGiven = Literal["both", "sentence"]
"""What the right side's probability is given: the left side and the sentence, or the sentence alone."""


def kinds_of(right_given: RightGiven) -> tuple[Kind, ...]:
    """Return what is generated for the three generative terms of Eq. 3, in its order."""
    return KINDS if right_given == "both" else ("sentence", "left", "continuation")


Size = Literal["tiny", "small", "base", "large"]
"""Size of a generator that is trained here."""

Reading = Literal["apart", "together"]
"""Whether its encoder reads each sentence by itself, or all that is read as one row."""


@dataclass(frozen=True)
class Cells:
    """Which sentence is scored in which context; cell *k* is ``sentences[rows[k]]`` in ``windows[columns[k]]``."""

    sentences: Sequence[str]  # the sentences that take the place of the centre
    windows: Sequence[Window]  # the contexts; their own centres play no part
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
    """What a generator says of some cells."""

    totals: Floats  # log probability of the generated text in nats, (kinds, n)
    tokens: Indices  # how many tokens that text has for this generator, (kinds, n); at least 1

    @property
    def per_token(self) -> Floats:
        """The log probability a token, ``(kinds, n)``: Eq. 3's 1/|.| log p(.)."""
        return self.totals / self.tokens


class Generator(ABC):
    """Gives p(s | left, right), p(left | s, right), p(right | left, s) and, if it can, p(right | s).

    Source: Sun et al. 2022 (TACL), "Sentence Similarity Based on Contexts", section 3.2.2, Eq. 2.
    Differs: p(right | s) is not in the paper.
    """

    identity: str  # everything that decides a probability besides the texts
    protocol: str  # the same in words, for results
    longest: int | None = None  # tokens that are read of a sentence; None for all

    def beyond(self, sentences: Sequence[str]) -> list[str]:
        """Return those of the sentences that are longer than what is read of one."""
        return []

    @abstractmethod
    def measure(self, cells: Cells, kinds: Sequence[Kind] = KINDS) -> LogProbs:
        """Return the log probabilities of all cells, for each of ``kinds`` a row.

        Raises:
            DataError: if a window lacks the side that is to be generated.
            ModelError: if a number is not finite, or the model was not trained for one of ``kinds``.
        """


class NoGenerator(Generator):
    """Stands where no term of a generator counts: none is trained, nor opened."""

    identity = "none"
    protocol = "no generator"

    def measure(self, cells: Cells, kinds: Sequence[Kind] = KINDS) -> LogProbs:
        """Raise ModelError: nothing can be measured."""
        raise ModelError(
            f"Without a generator there is no probability of {', '.join(kinds)}. Give these terms weight 0."
        )


def checked(measured: LogProbs, cells: Cells, kinds: Sequence[Kind]) -> LogProbs:
    """Return what was measured, if it is finite; ModelError otherwise, naming the first cell concerned."""
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
    """Return the members of each group of equal keys, groups in ascending order of key, members in theirs."""
    if not len(keys):
        return []
    order = np.argsort(keys, kind="stable")
    edges = np.flatnonzero(np.diff(keys[order])) + 1
    return np.split(order, edges)


def batches_of(lengths: Sequence[int] | Indices, budget: int) -> Iterator[Indices]:
    """Yield the members of each batch: sorted by length, so that padded to its longest it keeps within ``budget``."""
    order = np.argsort(np.asarray(lengths), kind="stable")[::-1]
    start = 0
    while start < len(order):
        longest = max(1, int(lengths[order[start]]))
        end = start + max(1, budget // longest)
        yield order[start:end]
        start = end
