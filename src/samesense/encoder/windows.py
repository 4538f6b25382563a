"""Texts that are longer than what a model reads, cut into windows that it reads whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from samesense.encoder.pieces import Pieces, whole
from samesense.execution.unread import Unread
from samesense.types import Embeddings

LETTERS_A_TOKEN = 16
"""Characters of a text, for each token that a model reads, in which there is nearly always one token more."""

Chunk = Literal["mean", "max"]
"""What the vector of a cut text is of those of its windows: the mean, or of each dimension the greatest."""

Span = tuple[int, int]


@dataclass(frozen=True)
class Reading:
    """How much a model reads of a text.

    Attributes:
        longest: tokens that it reads at most, those included that it adds; ``None`` for any number.
        lengths: the tokens of each text, uncut, with those that the model adds.
        spans: where each token of a text stands in it, without those that the model adds.
        pieces: what the model reads of each text, piece by piece; by default a text is read, or is not, as a whole.
    """

    longest: int | None
    lengths: Callable[[list[str]], list[int]]
    spans: Callable[[str], list[Span]]
    pieces: Callable[[list[str]], list[Pieces]] | None = None

    def pieces_of(self, texts: Sequence[str]) -> list[Pieces]:
        """Return what the model reads of each text."""
        if self.pieces is not None:
            return self.pieces(list(texts))
        longest = self.longest
        if longest is None:
            return whole(texts)
        return [
            Pieces((text,), 0, known=True) if length > longest else Pieces((), 0, known=True)
            for text, length in zip(texts, self.lengths(list(texts)), strict=True)
        ]

    def longer(self, texts: Sequence[str]) -> list[bool]:
        """Return of each text whether it is cut; of a long one no more is looked at than it takes."""
        longest = self.longest
        if longest is None:
            return [False] * len(texts)
        enough = LETTERS_A_TOKEN * longest
        heads = self.lengths([text[:enough] for text in texts])
        cut = [length > longest for length in heads]
        doubtful = [place for place, text in enumerate(texts) if not cut[place] and len(text) > enough]
        for place, length in zip(doubtful, self.lengths([texts[place] for place in doubtful]), strict=True):
            cut[place] = length > longest
        return cut


def unread_of(texts: Sequence[str], reading: Reading | None) -> Unread:
    """Return what is not read of texts, without encoding them; ``None`` reads everything."""
    found = Unread()
    found.see(texts)
    if reading is None or not texts:
        return found
    found.longest = reading.longest or 0
    for text, pieces in zip(texts, reading.pieces_of(texts), strict=True):
        if pieces.cut:
            found.cut.add(text)
        if not pieces.known:
            found.unknown.add(text)
    return found


@dataclass(frozen=True)
class Windows:
    """Texts as windows: all of them in order, and how many each text has."""

    texts: list[str]
    counts: list[int]

    @property
    def figures(self) -> dict[str, int]:
        """How many texts were cut, and into how many windows."""
        several = [count for count in self.counts if count > 1]
        return {"cut": len(several), "windows": sum(several)}

    def join(self, rows: Embeddings, how: Chunk) -> Embeddings:
        """Return the vectors of the texts, ``(texts, dim)``, of those of their windows, ``(windows, dim)``.

        That of a text that was cut is scaled to the mean length of those of its windows, so that a model whose vectors
        are of unit length keeps to it; that of any other is as the model gave it.
        """
        if len(rows) == len(self.counts):
            return rows
        counts = np.array(self.counts)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        wide = rows.astype(np.float64)
        joined = np.maximum.reduceat(wide, starts) if how == "max" else np.add.reduceat(wide, starts)
        lengths = np.add.reduceat(np.linalg.norm(wide, axis=1), starts) / counts
        own = np.maximum(np.linalg.norm(joined, axis=1), np.finfo(np.float64).tiny)
        scaled: Embeddings = (joined * (lengths / own)[:, None]).astype(np.float32)
        scaled[counts == 1] = rows[starts[counts == 1]]
        return scaled


def figures_in_words(figures: dict[str, int], texts: int, how: Chunk) -> str:
    """Say how many texts were cut."""
    cut, windows = figures["cut"], figures["windows"]
    if not cut:
        return f"no text of {texts} is longer than what the model reads"
    kind = {"mean": "the mean", "max": "the greatest of each dimension"}[how]
    return f"{cut} of {texts} texts are longer than what the model reads: cut into {windows} windows, {kind} is taken"


def cut_texts(texts: Sequence[str], reading: Reading | None = None) -> Windows:
    """Return texts as windows; one that the model reads whole is a window, as it is; ``None`` reads everything."""
    longest = reading.longest if reading is not None else None
    if reading is None or longest is None:
        return Windows(list(texts), [1] * len(texts))
    found = [
        [text] if length <= longest else _windows(text, reading, longest)
        for text, length in zip(texts, reading.lengths(list(texts)), strict=True)
    ]
    return Windows([window for windows in found for window in windows], [len(windows) for windows in found])


def _windows(text: str, reading: Reading, longest: int) -> list[str]:
    """Return windows of about equal length; a token may be two where a window begins with it, so they are counted."""
    spans = reading.spans(text)
    room = max(1, longest - reading.lengths([""])[0])
    while True:
        windows = _cut(text, spans, room)
        if room == 1 or max(reading.lengths(windows)) <= longest:
            return windows
        room = max(1, room * 7 // 8)


def _cut(text: str, spans: Sequence[Span], room: int) -> list[str]:
    """Return windows of at most ``room`` tokens and like length, each beginning with a word where one begins near."""
    edges, start = [0], 0
    while len(spans) - start > room:
        left = len(spans) - start
        end = start + -(-left // -(-left // room))
        near = (end - start) // 4
        places = sorted(range(end - near, min(end + near, start + room) + 1), key=lambda at: abs(at - end))
        start = next((at for at in places if at < len(spans) and _begins_word(text, spans[at][0])), end)
        edges.append(spans[start][0])
    pieces = [text[a:b].strip() for a, b in zip(edges, [*edges[1:], len(text)], strict=True)]
    return [piece for piece in pieces if piece]


def _begins_word(text: str, at: int) -> bool:
    return text[at : at + 1].isspace() or text[at - 1 : at].isspace()
