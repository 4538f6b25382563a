"""Texts longer than a model's maximum length, cut into windows that it reads whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from samesense.choices import Chunk
from samesense.encoder.pieces import Pieces, whole
from samesense.execution.unread import Unread
from samesense.types import Embeddings

LETTERS_A_TOKEN = 16
"""Characters per token of the maximum length: a text with more of them is nearly always longer than the maximum."""

BLOCK_TEXTS = 4096
"""Number of texts tokenised at once."""

Span = tuple[int, int]


@dataclass(frozen=True)
class Reading:
    """How a model tokenizes texts and how much of a text it reads.

    Attributes:
        longest: maximum length in tokens, special tokens included; ``None`` for no limit.
        lengths: number of tokens of each text, uncut, special tokens included.
        spans: character span of each token of a text, without special tokens.
        pieces: pieces of each text; without it a text counts as one piece, read or not.
    """

    longest: int | None
    lengths: Callable[[list[str]], list[int]]
    spans: Callable[[str], list[Span]]
    pieces: Callable[[list[str]], list[Pieces]] | None = None

    def pieces_of(self, texts: Sequence[str]) -> list[Pieces]:
        """Return the pieces of each text."""
        if self.pieces is not None:
            return self.pieces(list(texts))
        longest = self.longest
        if longest is None:
            return whole(texts)
        return [
            Pieces((text,), 0, has_known=True) if length > longest else Pieces((), 0, has_known=True)
            for text, length in zip(texts, self.lengths(list(texts)), strict=True)
        ]

    def longer(self, texts: Sequence[str]) -> list[bool]:
        """Return for each text whether it is cut; long texts are tokenized only as far as needed."""
        longest = self.longest
        if longest is None:
            return [False] * len(texts)
        # the beginning of a long text is usually enough to see that it is cut
        enough = LETTERS_A_TOKEN * longest
        heads = self.lengths([text[:enough] for text in texts])
        is_cut = [length > longest for length in heads]
        doubtful = [index for index, text in enumerate(texts) if not is_cut[index] and len(text) > enough]
        for index, length in zip(doubtful, self.lengths([texts[index] for index in doubtful]), strict=True):
            is_cut[index] = length > longest
        return is_cut


def find_unread(texts: Sequence[str], reading: Reading | None) -> Unread:
    """Return what a model does not read of texts, without encoding them; a reading of ``None`` reads everything."""
    unread = Unread()
    unread.see(texts)
    if reading is None or not texts:
        return unread
    unread.longest = reading.longest or 0
    # The pieces of all texts would take several times the memory of the texts.
    for start in range(0, len(texts), BLOCK_TEXTS):
        block = texts[start : start + BLOCK_TEXTS]
        for text, pieces in zip(block, reading.pieces_of(block), strict=True):
            if pieces.cut:
                unread.cut.add(text)
            if not pieces.has_known:
                unread.unknown.add(text)
    return unread


@dataclass(frozen=True)
class Windows:
    """The windows of all texts in order, and the number of windows of each text."""

    texts: list[str]
    counts: list[int]

    @property
    def figures(self) -> dict[str, int]:
        """Number of texts that were cut, and of their windows."""
        several = [count for count in self.counts if count > 1]
        return {"cut": len(several), "windows": sum(several)}

    def join(self, rows: Embeddings, combine: Chunk) -> Embeddings:
        """Return the vectors of the texts, ``(texts, dim)``, from those of their windows, ``(windows, dim)``.

        The vector of a cut text is scaled to the mean length of its windows' vectors, so that unit vectors give a unit
        vector; the vector of an uncut text is returned as it is.
        """
        # As many windows as texts: none was cut.
        if len(rows) == len(self.counts):
            return rows
        counts = np.array(self.counts)
        starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
        exact = rows.astype(np.float64)
        if combine == "max":
            joined = np.maximum.reduceat(exact, starts)
        else:
            joined = np.add.reduceat(exact, starts)
        lengths = np.add.reduceat(np.linalg.norm(exact, axis=1), starts) / counts
        # The sum of opposite windows may be zero.
        joined_lengths = np.maximum(np.linalg.norm(joined, axis=1), np.finfo(np.float64).tiny)
        scaled: Embeddings = (joined * (lengths / joined_lengths)[:, None]).astype(np.float32)
        scaled[counts == 1] = rows[starts[counts == 1]]
        return scaled


def describe_windows(figures: dict[str, int], texts: int, combine: Chunk) -> str:
    """Return in words how many texts were cut."""
    cut = figures["cut"]
    windows = figures["windows"]
    if not cut:
        return f"no text of {texts} is longer than what the model reads"
    kind = {"mean": "the mean", "max": "the greatest of each dimension"}[combine]
    return f"{cut} of {texts} texts are longer than what the model reads: cut into {windows} windows, {kind} is taken"


def cut_into_windows(texts: Sequence[str], reading: Reading | None = None) -> Windows:
    """Return texts as windows; a text that is read whole is one window. A reading of ``None`` reads everything."""
    longest = None if reading is None else reading.longest
    if reading is None or longest is None:
        return Windows(list(texts), [1] * len(texts))
    windows_of_texts = [
        [text] if length <= longest else _windows(text, reading, longest)
        for text, length in zip(texts, reading.lengths(list(texts)), strict=True)
    ]
    return Windows(
        [window for windows in windows_of_texts for window in windows], [len(windows) for windows in windows_of_texts]
    )


def _windows(text: str, reading: Reading, longest: int) -> list[str]:
    """Return windows of about equal length.

    A window may have more tokens by itself than in the text, so the windows are counted, and made smaller if needed.
    """
    spans = reading.spans(text)
    window_tokens = max(1, longest - reading.lengths([""])[0])
    while True:
        windows = _cut_windows(text, spans, window_tokens)
        # one token is the least that a window can have, even if it is still too long
        if window_tokens == 1 or max(reading.lengths(windows)) <= longest:
            return windows
        # Small steps, so that windows end up little shorter than they must be.
        window_tokens = max(1, window_tokens * 7 // 8)


def _cut_windows(text: str, spans: Sequence[Span], window_tokens: int) -> list[str]:
    """Return windows of similar length, at most ``window_tokens``, each beginning at a word if one begins nearby."""
    starts = [0]
    start = 0
    while len(spans) - start > window_tokens:
        remaining = len(spans) - start
        windows = -(-remaining // window_tokens)  # rounded up
        end = start + -(-remaining // windows)
        tolerance = (end - start) // 4
        ends = sorted(
            range(end - tolerance, min(end + tolerance, start + window_tokens) + 1),
            key=lambda candidate: abs(candidate - end),
        )
        start = next(
            (candidate for candidate in ends if candidate < len(spans) and _begins_word(text, spans[candidate][0])), end
        )
        starts.append(spans[start][0])
    pieces = [text[a:b].strip() for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    return [piece for piece in pieces if piece]


def _begins_word(text: str, position: int) -> bool:
    return text[position : position + 1].isspace() or text[position - 1 : position].isspace()
