"""Which words made the score of two texts: shares of the cosine by tokens, or what the score loses without a word."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from samesense.context.corpus.words import WORD_OR_MARK
from samesense.errors import DataError, ModelError
from samesense.execution.unread import counted, note
from samesense.inference.models.model import Model
from samesense.results import Shown
from samesense.types import Floats, Marked, Pair, Scores

By = Literal["auto", "tokens", "occlusion"]

MARKS = "[marks]"
"""What stands for tokens that are not in the text: those of the model itself, and of its prompt."""


@dataclass(frozen=True)
class Word:
    """A word of a text.

    Attributes:
        text: the word; :data:`MARKS` for what the model adds.
        start: where it begins in the text.
        end: where it ends.
        share: what it adds to the score, or takes off it.
    """

    text: str
    start: int
    end: int
    share: float


class WordPair(NamedTuple):
    """A word of either text, and what the two add to the score together."""

    first: str
    second: str
    share: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation(Shown):
    """The score of two texts with the share of each word. Prints as a table.

    Attributes:
        texts: the two.
        score: of the model.
        by: ``"tokens"``: a share is the sum over pairs of token vectors, and those of either text sum to the score;
            ``"occlusion"``: it is what the score loses without the word.
        why: why tokens could not be taken, where they were wanted; empty otherwise.
        words1: of the first text, in order.
        words2: of the second.
        pairs: of words, the largest share first; by tokens only.
    """

    texts: Pair
    score: float
    by: Literal["tokens", "occlusion"]
    why: str = ""
    words1: tuple[Word, ...]
    words2: tuple[Word, ...]
    pairs: tuple[WordPair, ...] = ()

    @property
    def gap(self) -> float:
        """How far the shares of the first text are from the score in sum; by tokens it is rounding alone."""
        return self.score - sum(word.share for word in self.words1)

    def marked(self) -> tuple[Marked, Marked]:
        """Return either text in pieces that together are the text, each with its share; 0 between words."""
        return _pieces(self.texts[0], self.words1), _pieces(self.texts[1], self.words2)

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        content = asdict(self)
        pairs = [pair._asdict() for pair in self.pairs]
        return {**content, "texts": list(self.texts), "gap": self.gap, "pairs": pairs}

    def table(self, top: int = 10) -> str:
        """Lay it out as plain text, with the ``top`` pairs of words that add most."""
        method = "by the vectors of tokens" if self.by == "tokens" else "by what it loses without a word"
        lines = [f"{self.score:.4f}  {method}{f' ({self.why})' if self.why else ''}; the shares sum to {self._sums()}"]
        for title, words in zip(("first text", "second text"), (self.words1, self.words2), strict=True):
            lines += ["", title, *(f"{word.share:+.4f}  {word.text}" for word in words)]
        if self.pairs:
            lines += ["", "pairs", *(f"{pair.share:+.4f}  {pair.first}  {pair.second}" for pair in self.pairs[:top])]
        return "\n".join(lines)

    def _sums(self) -> str:
        return " and ".join(f"{sum(word.share for word in words):.4f}" for words in (self.words1, self.words2))

    __str__ = table


def explain(model: Model, text1: str, text2: str, *, by: By = "auto") -> Explanation:
    """Return which words made the score of two texts.

    By tokens: where an embedding is the mean of token vectors, the cosine of a = sum of t_i / n and b = sum of u_j / m
    is the sum over all pairs of tokens of t_i u_j / (n m |a| |b|). Exact, but a token's vector holds what it has seen
    of the others. By occlusion: the score less that without the word; for any model, and not a sum.

    Args:
        model: whatever scores pairs.
        text1: first text.
        text2: second text.
        by: ``"auto"`` takes tokens where the embedding is their mean, else occlusion, and says why.

    Raises:
        DataError: if a text is empty.
        ModelError: if tokens are asked for and the embedding is no mean of them.
    """
    if not text1.strip() or not text2.strip():
        raise DataError("Two texts are explained, and one of them is empty.")
    why = ""
    if by != "occlusion":
        try:
            return _by_tokens(model, (text1, text2))
        except _NoTokensError as error:
            why = str(error)
    if by == "tokens":
        raise ModelError(f"{model.name or 'This model'} cannot be explained by its tokens: {why}. Take occlusion.")
    return _by_occlusion(model, (text1, text2), why)


def marked(model: Model, pairs: Iterable[Pair], *, most_words: int = 0) -> dict[Pair, tuple[Marked, Marked]]:
    """Return pairs with the shares of their words, by tokens.

    A model that tokens do not explain has those pairs that hold at most ``most_words`` words explained by leaving each
    of them out, which costs a score a word; the others are left out.
    """
    marks = {}
    for pair in pairs:
        few = sum(len(word_spans(text)) for text in pair) <= most_words
        if all(text.strip() for text in pair):
            with suppress(ModelError):
                marks[pair] = explain(model, *pair, by="auto" if few else "tokens").marked()
    return marks


def _pieces(text: str, words: Sequence[Word]) -> Marked:
    pieces = []
    end = 0
    for word in words:
        pieces += [(text[end : word.start], 0.0), (text[word.start : word.end], word.share)]
        end = word.end
    return [(piece, share) for piece, share in [*pieces, (text[end:], 0.0)] if piece]


class _NoTokensError(Exception):
    """Why a model cannot be explained by its tokens."""


def _by_tokens(model: Model, texts: Pair) -> Explanation:
    if not model.embeds or not model.backend.startswith(("torch", "numpy")):
        reason = f"by {model.backend or 'a function'}" if model.embeds else "from both texts together"
        raise _NoTokensError(f"it is computed {reason}")
    from samesense.encoder.forward.token_parts import token_parts

    try:
        parts1, parts2 = (token_parts(model.encoder, text) for text in texts)
    except ModelError as error:
        raise _NoTokensError(str(error)) from error
    left = parts1.vectors.astype(np.float64)
    right = parts2.vectors.astype(np.float64)
    shares = left @ right.T / (np.linalg.norm(left.sum(axis=0)) * np.linalg.norm(right.sum(axis=0)))
    rows, names1 = _grouped(texts[0], parts1.spans)
    columns, names2 = _grouped(texts[1], parts2.spans)
    table = np.zeros((len(names1), len(names2)))
    np.add.at(table, (rows[:, None], columns[None]), shares)
    pairs = [
        WordPair(texts[0][a:b] or MARKS, texts[1][c:d] or MARKS, float(table[i, j]))
        for i, (a, b) in enumerate(names1)
        for j, (c, d) in enumerate(names2)
    ]
    return Explanation(
        texts=texts, score=model.similarity(*texts), by="tokens", words1=_words(texts[0], names1, table.sum(axis=1)),
        words2=_words(texts[1], names2, table.sum(axis=0)), pairs=tuple(sorted(pairs, key=lambda pair: -pair.share)),
    )  # fmt: skip


def _grouped(text: str, spans: Sequence[tuple[int, int]]) -> tuple[npt.NDArray[np.intp], list[tuple[int, int]]]:
    """Return for each token the place of its word, and where the words stand; the last may be what the model adds."""
    words = word_spans(text)
    starts = [start for start, _ in words]
    word_indices = []
    for start, end in spans:
        inside = start + len(text[start:end]) - len(text[start:end].lstrip())  # a token may begin with a space
        word_indices.append(max(0, bisect_right(starts, inside) - 1) if end > start else len(words))
    marks = [(len(text), len(text))] if len(words) in word_indices else []
    return np.array(word_indices, dtype=np.intp), [*words, *marks]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return where the words and marks of a text stand; all of it, if it has none."""
    return [match.span() for match in WORD_OR_MARK.finditer(text)] or [(0, len(text))]


def _words(text: str, spans: Sequence[tuple[int, int]], shares: Floats) -> tuple[Word, ...]:
    return tuple(
        Word(text[start:end] or MARKS, start, end, float(value))
        for (start, end), value in zip(spans, shares, strict=True)
    )


def _by_occlusion(model: Model, texts: Pair, why: str) -> Explanation:
    with counted(apart=True) as unread:  # of the texts themselves, not of what is left of them without a word
        scores = model.scores(occluded(texts))
    note(unread.among(texts), model)
    shares1, shares2 = losses(scores, texts)
    return Explanation(
        texts=texts, score=float(scores[0]), by="occlusion", why=why,
        words1=_words(texts[0], word_spans(texts[0]), shares1), words2=_words(texts[1], word_spans(texts[1]), shares2),
    )  # fmt: skip


def occluded(texts: Pair) -> list[Pair]:
    """Return the two texts, then the first without each of its words, then the second; none is left empty."""
    text1, text2 = texts
    return [texts, *((less, text2) for less in _without(text1)), *((text1, less) for less in _without(text2))]


def losses(scores: Scores, texts: Pair) -> tuple[Floats, Floats]:
    """Return what the score loses without each word of either text, of the scores of what :func:`occluded` gives."""
    count = len(_without(texts[0]))
    shares = scores[0] - scores[1:]
    first = shares[:count]
    second = shares[count:]
    alone = scores[:1]
    return first if count else alone, second if len(second) else alone


def _without(text: str) -> list[str]:
    """Return the text without each of its words, with the space before it; nothing if there is but one."""
    spans = word_spans(text)
    if len(spans) == 1:
        return []
    return [(text[:start].rstrip() + text[end:]).strip() for start, end in spans]
