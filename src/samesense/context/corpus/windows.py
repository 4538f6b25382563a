"""A sentence with its neighbours, and how many of them belong to it."""

from __future__ import annotations

from dataclasses import dataclass

from samesense.errors import ConfigError


@dataclass(frozen=True)
class Window:
    """A sentence of a corpus between its neighbours: the context (left, right) and what stood in it.

    Attributes:
        left: the sentences before, in order.
        centre: the sentence itself.
        right: the sentences after, in order.
        id: number of the window, which is that of the centre in the corpus.
        chunk: number of the chunk in which the centre lies.
        document: number of the document, in the order of the corpus.
    """

    left: tuple[str, ...]
    centre: str
    right: tuple[str, ...]
    id: int
    chunk: int
    document: int


@dataclass(frozen=True, kw_only=True)
class Shape:
    """How documents are cut into windows and chunks; neither ever reaches over the edge of a document.

    A chunk is a run of consecutive sentences; the chunks of a document follow each other without overlap, and the last
    one may be shorter.

    Source: Sun et al. 2022, sections 3.2.1 and 3.3, which give no number. Two sentences on a side: one is often a
        fragment that says little, and the cost of Eq. 3 grows with every further one. Chunks of five sentences are some
        100 words of English, the passages of Karpukhin et al. 2020, whose pipeline the paper names as its model.

    Attributes:
        left: most sentences before the centre.
        right: most sentences after it.
        least: a sentence with fewer neighbours than this on a side is no centre of a window. With 1, sides at the
            edges of a document may be shorter but never empty, which would leave terms of Eq. 3 undefined.
        chunk: sentences in a chunk.

    Raises:
        ConfigError: if a number is out of range, or there would be no context at all.
    """

    left: int = 2
    right: int = 2
    least: int = 1
    chunk: int = 5

    def __post_init__(self) -> None:
        if min(self.left, self.right, self.least) < 0 or self.left + self.right < 1 or self.chunk < 1:
            raise ConfigError(
                f"A window has 0 or more sentences on a side, one in all at least, and a chunk has 1 or more; received "
                f"{self}."
            )
        if self.least > min(self.left, self.right):
            raise ConfigError(
                f"least asks for {self.least} sentences on each side, and windows have {self.left} and {self.right} at "
                "most. Lower it, or widen the windows."
            )
