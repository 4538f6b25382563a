"""Explain the score of two texts by their words: shares of the cosine by tokens, or the loss without each word."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from samesense.context.corpus.words import word_or_mark
from samesense.errors import DataError, ModelError
from samesense.execution.unread import counted, note
from samesense.failures import visible
from samesense.inference.models.model import Model
from samesense.results.shown import Shown
from samesense.types import Floats, Marked, Pair, Scores

By = Literal["auto", "tokens", "occlusion"]
"""How a score is divided among words."""

MARKS = "[marks]"
"""Placeholder for the special tokens and the prompt, which are not part of the text."""


@dataclass(frozen=True)
class Word:
    """A word of a text.

    Attributes:
        text: the word; :data:`MARKS` for special tokens and prompt.
        start: index of its first character in the text.
        end: index after its last character.
        share: its contribution to the score, which may be negative.
    """

    text: str
    start: int
    end: int
    share: float


class WordPair(NamedTuple):
    """A word of either text, and their joint contribution to the score."""

    first: str
    second: str
    share: float


@dataclass(frozen=True, kw_only=True, repr=False)
class Explanation(Shown):
    """The score of two texts with the share of each word. Prints as a table.

    Attributes:
        texts: the two texts.
        score: score of the model.
        by: ``"tokens"``: a share is a sum over pairs of token vectors, and the shares of either text sum to the score;
            ``"occlusion"``: a share is the loss of the score without the word.
        why: reason why tokens could not be used, if they were requested; else empty.
        words1: words of the first text, in order.
        words2: words of the second text.
        pairs: pairs of words, the largest share first; by tokens only.
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
        """The score minus the sum of the shares of the first text; by tokens this is rounding error only."""
        return self.score - sum(word.share for word in self.words1)

    def marked(self) -> tuple[Marked, Marked]:
        """Return either text split into pieces, each with its share; 0 between words."""
        return _pieces(self.texts[0], self.words1), _pieces(self.texts[1], self.words2)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as JSON types."""
        content = asdict(self)
        pairs = [pair._asdict() for pair in self.pairs]
        return {**content, "texts": list(self.texts), "gap": self.gap, "pairs": pairs}

    def table(self, top: int = 10) -> str:
        """Return the explanation as plain text, with the ``top`` pairs of words that contribute most."""
        method = "by what it loses without a word"
        if self.by == "tokens":
            method = "by the vectors of tokens"
        if self.why:
            method += f" ({self.why})"
        lines = [f"{self.score:.4f}  {method}; the shares sum to {self._sums()}"]
        for title, words in zip(("first text", "second text"), (self.words1, self.words2), strict=True):
            lines += ["", title, *(f"{word.share:+.4f}  {word.text}" for word in words)]
        if self.pairs:
            lines += ["", "pairs", *(f"{pair.share:+.4f}  {pair.first}  {pair.second}" for pair in self.pairs[:top])]
        return visible("\n".join(lines))

    def _sums(self) -> str:
        return " and ".join(f"{sum(word.share for word in words):.4f}" for words in (self.words1, self.words2))

    __str__ = table


def check_filled(text1: str, text2: str) -> None:
    """Raise DataError if one of two texts is empty."""
    if not text1.strip() or not text2.strip():
        raise DataError("Two texts are explained, and one of them is empty. Give both.")


def explain(model: Model, text1: str, text2: str, *, by: By = "auto") -> Explanation:
    """Return the contributions of words to the score of two texts.

    By tokens: where an embedding is the mean of token vectors, the cosine of a = sum of t_i / n and b = sum of u_j / m
    is the sum over all pairs of tokens of t_i u_j / (n m |a| |b|). This is exact, but token vectors are contextual. By
    occlusion: the score minus that without the word; this works for any model, but the shares do not sum to the score.

    Args:
        model: any model.
        text1: first text.
        text2: second text.
        by: ``"auto"`` uses tokens if the embedding is their mean, else occlusion, and gives the reason.

    Raises:
        DataError: if a text is empty.
        ModelError: if tokens are requested and the embedding is not their mean.
    """
    check_filled(text1, text2)
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

    If the model cannot be explained by tokens, pairs of at most ``most_words`` words are explained by occlusion, which
    costs a score a word, and the others are left out.
    """
    marks = {}
    for pair in pairs:
        few = sum(len(word_spans(text)) for text in pair) <= most_words
        if all(text.strip() for text in pair):
            with suppress(ModelError):
                marks[pair] = explain(model, *pair, by="auto" if few else "tokens").marked()
    return marks


def _pieces(text: str, words: Sequence[Word]) -> Marked:
    """Return a text split into words and what is between them, each with its share."""
    pieces = []
    end = 0
    for word in words:
        pieces += [(text[end : word.start], 0.0), (text[word.start : word.end], word.share)]
        end = word.end
    return [(piece, share) for piece, share in [*pieces, (text[end:], 0.0)] if piece]


class _NoTokensError(Exception):
    """The model cannot be explained by its tokens; the message is the reason."""


def _by_tokens(model: Model, texts: Pair) -> Explanation:
    """Return the shares of words as sums over their tokens."""
    if not model.embeds or not model.backend.startswith(("torch", "numpy")):
        reason = "from both texts together"
        if model.embeds:
            reason = f"by {model.backend or 'a function'}"
        raise _NoTokensError(f"it is computed {reason}")
    # Loads torch, which the model has loaded if it explains by tokens.
    from samesense.encoder.forward.token_parts import token_parts

    try:
        parts1, parts2 = (token_parts(model.encoder, text) for text in texts)
    except ModelError as error:
        raise _NoTokensError(str(error)) from error
    left = parts1.vectors.astype(np.float64)
    right = parts2.vectors.astype(np.float64)
    shares = left @ right.T / (np.linalg.norm(left.sum(axis=0)) * np.linalg.norm(right.sum(axis=0)))
    rows, spans1 = _grouped(texts[0], parts1.spans)
    columns, spans2 = _grouped(texts[1], parts2.spans)
    table = np.zeros((len(spans1), len(spans2)))
    # Several tokens of one word add up, where an indexed addition would keep one.
    np.add.at(table, (rows[:, None], columns[None]), shares)
    pairs = [
        WordPair(texts[0][start1:end1] or MARKS, texts[1][start2:end2] or MARKS, float(table[row, column]))
        for row, (start1, end1) in enumerate(spans1)
        for column, (start2, end2) in enumerate(spans2)
    ]
    return Explanation(
        texts=texts,
        score=model.similarity(*texts),
        by="tokens",
        words1=_words(texts[0], spans1, table.sum(axis=1)),
        words2=_words(texts[1], spans2, table.sum(axis=0)),
        pairs=tuple(sorted(pairs, key=lambda pair: -pair.share)),
    )


def _grouped(text: str, spans: Sequence[tuple[int, int]]) -> tuple[npt.NDArray[np.intp], list[tuple[int, int]]]:
    """Return the index of each token's word, and the spans of the words; a last, empty span is for special tokens."""
    words = word_spans(text)
    starts = [start for start, _ in words]
    word_indices = []
    for start, end in spans:
        inside = start + len(text[start:end]) - len(text[start:end].lstrip())  # a token may begin with a space
        # A token before the first word counts to that word.
        word_indices.append(max(0, bisect_right(starts, inside) - 1) if end > start else len(words))
    marks = [(len(text), len(text))] if len(words) in word_indices else []
    return np.array(word_indices, dtype=np.intp), [*words, *marks]


def word_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of the words and punctuation marks of a text; the whole text if it has none."""
    return [match.span() for match in word_or_mark().finditer(text)] or [(0, len(text))]


def _words(text: str, spans: Sequence[tuple[int, int]], shares: Floats) -> tuple[Word, ...]:
    return tuple(
        Word(text[start:end] or MARKS, start, end, float(value))
        for (start, end), value in zip(spans, shares, strict=True)
    )


def _by_occlusion(model: Model, texts: Pair, why: str) -> Explanation:
    """Return the loss of the score without each word."""
    with counted(apart=True) as unread:  # only truncation of the two texts is reported, not of their variants
        scores = model.scores(occluded(texts))
    note(unread.among(texts), model)
    shares1, shares2 = losses(scores, texts)
    return Explanation(
        texts=texts,
        score=float(scores[0]),
        by="occlusion",
        why=why,
        words1=_words(texts[0], word_spans(texts[0]), shares1),
        words2=_words(texts[1], word_spans(texts[1]), shares2),
    )


def occluded(texts: Pair) -> list[Pair]:
    """Return the pair, then the pairs without each word of the first text, then those without each of the second.

    A text of a single word is not occluded, as it would be empty.
    """
    text1, text2 = texts
    first = [(shorter, text2) for shorter in _without(text1)]
    second = [(text1, shorter) for shorter in _without(text2)]
    return [texts, *first, *second]


def losses(scores: Scores, texts: Pair) -> tuple[Floats, Floats]:
    """Return the loss of the score without each word of either text, from the scores of :func:`occluded` pairs.

    A single word has the whole score.
    """
    count = len(_without(texts[0]))
    shares = scores[0] - scores[1:]
    first = shares[:count]
    second = shares[count:]
    whole = scores[:1]
    return first if count else whole, second if len(second) else whole


def _without(text: str) -> list[str]:
    """Return the variants of a text without one of its words and the space before it; none if it has one word."""
    spans = word_spans(text)
    if len(spans) == 1:
        return []
    return [(text[:start].rstrip() + text[end:]).strip() for start, end in spans]
