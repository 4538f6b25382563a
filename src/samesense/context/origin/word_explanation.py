"""Why two sentences are alike or not, in words: those that both lead to, and those that only one leads to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from samesense.context.corpus.words import words as words_of
from samesense.context.origin.parts import OWN, STATE, WORDS, Parts
from samesense.context.origin.reader import Reader
from samesense.failures import visible
from samesense.results.shown import Shown
from samesense.types import Embeddings, Floats, Pair

LIKELY = 256
"""Likeliest tokens after a sentence, among which words are named: unlikely ones are mostly fragments."""

CANDIDATES = 48
"""Tokens, on each side, that are completed to words, so that inflections of one word can be added up."""

LEAST_STEM = 3
"""Letters that remain at least where an English ending is taken off."""

_ENDINGS = ("ings", "ing", "ers", "ies", "ed", "er", "es", "s", "e")


@dataclass(frozen=True, kw_only=True)
class WordShare:
    """What one word adds to the similarity of two sentences, its inflections together.

    Attributes:
        word: in lower case; of several inflections the one with the largest share.
        first: by how much it is more likely than usual after the first sentence, in nats; 0 if it is not.
        second: the same after the second.
        share: what it adds to the score. Of a word that only one sentence leads to, what it takes off: the score
            would be higher by that much without it.
    """

    word: str
    first: float
    second: float
    share: float


@dataclass(frozen=True, kw_only=True, repr=False)
class WordExplanation(Shown):
    """A similarity with its words.

    ``own + state + words + projection`` is the score.

    Attributes:
        sentences: the pair.
        score: its similarity.
        own: what the hidden states of the sentences by themselves add to it.
        state: what the state at the end of the prompt adds.
        words: what all words add; the shares of single words are parts of it.
        projection: what the score differs by because vectors hold the words in few dimensions.
        both: words that both sentences lead to, the largest share first.
        only_first: words that only the first leads to, those that take most off the score first.
        only_second: the same of the second.
    """

    sentences: tuple[str, str]
    score: float
    own: float
    state: float
    words: float
    projection: float
    both: Sequence[WordShare]
    only_first: Sequence[WordShare]
    only_second: Sequence[WordShare]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        return {**asdict(self), "sentences": list(self.sentences)}

    def table(self) -> str:
        """Lay it out as plain text: a word a line, with its share, and how likely it is after each sentence."""
        lines = [
            f"{self.score:.4f}  = own {self.own:+.4f}, state {self.state:+.4f}, words {self.words:+.4f}, "
            f"projection {self.projection:+z.4f}"
        ]
        groups = (
            ("both lead to", self.both),
            ("only the first leads to", self.only_first),
            ("only the second leads to", self.only_second),
        )
        for title, shares in groups:
            if shares:
                lines += ["", f"{title:<26}  share   first  second"]
                lines += [f"{row.word:>26}  {row.share:+.4f}  {row.first:5.2f}  {row.second:6.2f}" for row in shares]
        return visible("\n".join(lines))

    __str__ = table


def explain_words(reader: Reader, parts: Parts, pair: Pair, score: float, top: int) -> WordExplanation:
    """Return the similarity of two sentences with the words that made it.

    Args:
        reader: the language model.
        parts: of the Origin.
        pair: two sentences.
        score: their similarity.
        top: words on each side, at most.
    """
    readings = reader.read(pair)
    weights = parts.weights
    numbers = parts.numbers(readings)
    cosines = {name: weights[name] * float(rows[0] @ rows[1]) for name, rows in numbers.items()}
    values = parts.words.rows(readings.log_probs).toarray().astype(np.float64)
    lengths = np.maximum(np.linalg.norm(values, axis=1), np.finfo(np.float64).tiny)
    unit = weights[WORDS] ** 0.5 * values / lengths[:, None]
    words = float(unit[0] @ unit[1])
    groups = _groups(reader, parts, pair, np.where(_likely(readings.log_probs), values, 0.0))
    both: list[WordShare] = []
    only_first: list[WordShare] = []
    only_second: list[WordShare] = []
    for word, members in groups.items():
        first, second = unit[:, members]
        strengths = [float(side.max()) for side in values[:, members]]
        if all(strengths):
            both.append(WordShare(word=word, first=strengths[0], second=strengths[1], share=float(first @ second)))
        else:
            cost = _cost(words, float(first @ first + second @ second) / max(weights[WORDS], np.finfo(float).tiny))
            side = only_first if strengths[0] > 0 else only_second
            side.append(WordShare(word=word, first=strengths[0], second=strengths[1], share=cost))
    own = cosines.get(OWN, 0.0)
    state = cosines.get(STATE, 0.0)
    return WordExplanation(
        sentences=pair,
        score=score,
        own=own,
        state=state,
        words=words,
        projection=score - own - state - words,
        both=sorted(both, key=lambda row: -row.share)[:top],
        only_first=sorted(only_first, key=lambda row: -row.first)[:top],
        only_second=sorted(only_second, key=lambda row: -row.second)[:top],
    )


def _cost(words: float, share_of_length: float) -> float:
    """Return what a word takes off that makes up this share of one sentence's squared length."""
    remaining = max(1.0 - share_of_length, np.finfo(np.float64).eps)
    return words - words / math.sqrt(remaining)


def _groups(reader: Reader, parts: Parts, pair: Pair, values: Floats) -> dict[str, list[int]]:
    """Return the columns of each whole word among those that count most, by the inflection that counts most."""
    first, second = values
    candidates: dict[int, int] = {}  # column, and the sentence behind which it is completed
    for rank in (first * second, np.where(second > 0, 0, first), np.where(first > 0, 0, second)):
        for column in np.argsort(-rank, kind="stable")[:CANDIDATES]:
            if rank[column] > 0:
                candidates.setdefault(int(column), int(second[column] > first[column]))
    spelled: dict[int, str] = {}
    for side, sentence in enumerate(pair):
        columns = np.array([column for column, behind in candidates.items() if behind == side], dtype=np.int64)
        if len(columns):
            spelled |= dict(zip(columns.tolist(), reader.complete(sentence, parts.words.tokens[columns]), strict=True))
    stems_of_pair = {stem(word) for word in words_of(" ".join(pair))}
    groups: dict[str, list[int]] = {}
    names: dict[str, str] = {}  # of a stem, the inflection that came first, which is the one that counts most
    for column in candidates:
        word = spelled[column].lower()
        if stem(word) not in stems_of_pair and not reader.is_frequent(word):
            continue  # perhaps a fragment
        groups.setdefault(names.setdefault(stem(word), word), []).append(column)
    return groups


def _likely(log_probs: Embeddings) -> npt.NDArray[np.bool_]:
    """Return which words are among the likeliest after either sentence, ``(words,)``."""
    least = np.sort(log_probs, axis=1)[:, -LIKELY:][:, 0]
    return np.asarray((log_probs >= least[:, None]).any(axis=0))


def stem(word: str) -> str:
    """Return a word without its English ending, so that inflections of one word are the same.

    Example:
        >>> stem("playing") == stem("played") == stem("plays") == stem("play")
        True
    """
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= LEAST_STEM and not word.endswith("ss"):
            return _undoubled(word.removesuffix(ending))
    return word


def _undoubled(word: str) -> str:
    """Return a stem with one letter at its end where an ending doubled it, as in running."""
    is_doubled = len(word) > LEAST_STEM and word[-1] == word[-2] and word[-1] not in "lsz"
    if is_doubled:
        return word[:-1]
    return word
