"""Similarity of documents by their sentences: how well each sentence is matched in the other document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from samesense.data.sentence_splitting import split_paragraphs, split_sentences
from samesense.errors import ConfigError, DataError
from samesense.inference.lines import without_breaks
from samesense.inference.models.model import Model
from samesense.inference.search.ties import in_order, same_as
from samesense.results.shown import Shown
from samesense.types import Pair, Scores


class Match(NamedTuple):
    """A sentence, the most similar sentence of the other document, and their score."""

    text: str
    best: str
    score: float


@dataclass(frozen=True, repr=False)
class SentenceMatches(Shown):
    """The score of two documents, with the best match of each sentence. Prints as a table.

    Attributes:
        score: the mean over both directions.
        first: matches of the sentences of the first document, in order.
        second: matches of the sentences of the second document.
    """

    score: float
    first: tuple[Match, ...]
    second: tuple[Match, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the matches as JSON types."""
        content = asdict(self)
        return {**content, **{name: [match._asdict() for match in content[name]] for name in ("first", "second")}}

    def table(self) -> str:
        """Return the matches as plain text: the score of each sentence, the sentence, and its match."""
        lines = [f"{self.score:.4f}  by the best matches of sentences"]
        for title, matches in (("first text", self.first), ("second text", self.second)):
            lines += ["", f"{title}, mean {np.mean([match.score for match in matches]):.4f}"]
            lines += [
                f"{match.score:+.4f}  {without_breaks(match.text)}  =  {without_breaks(match.best)}"
                for match in matches
            ]
        return "\n".join(lines)

    __str__ = table


def match_sentences(model: Model, pairs: Sequence[Pair]) -> list[SentenceMatches]:
    """Return the score of each pair of documents by their sentences, with the matches.

    With s_ij the score of sentence i of the first document and j of the second, the score of the documents is the mean
    of mean_i max_j s_ij and mean_j max_i s_ij. It is the same in either order if the model's scores are.

    Source: Mihalcea, Corley and Strapparava (2006), "Corpus-based and knowledge-based measures of text semantic
    similarity", equation 1.
    Differs: sentences instead of words, all with the same weight.

    Args:
        model: any model; each distinct sentence is encoded once.
        pairs: pairs of documents, as texts; see :func:`~samesense.data.sentence_splitting.split_sentences`.

    Raises:
        DataError: if a document is empty.
        MissingExtraError: if nupunkt, which splits English sentences, is not installed.
    """
    split_pairs = [(_sentences(left), _sentences(right)) for left, right in pairs]
    scores = model.scores([(a, b) for first, second in split_pairs for a in first for b in second])
    matches = []
    start = 0
    for first, second in split_pairs:
        count = len(first) * len(second)
        matches.append(_matches(first, second, scores[start : start + count].reshape(len(first), len(second))))
        start += count
    return matches


def sentence_scores(model: Model, pairs: Sequence[Pair]) -> Scores:
    """Return the score of each pair of documents, ``(pairs,)``; see :func:`match_sentences`."""
    return np.array([match.score for match in match_sentences(model, pairs)], dtype=np.float64)


def check_scale(*, calibrated: bool) -> None:
    """Raise ConfigError for calibrated scores by sentences, as calibrations are fitted on whole texts."""
    if calibrated:
        raise ConfigError("A calibration is that of whole texts; received `by` sentences. Leave out one of the two.")


def _sentences(text: str) -> list[str]:
    sentences = [sentence for paragraph in split_paragraphs(text) for sentence in split_sentences(paragraph)]
    if not sentences:
        raise DataError("Documents are compared by their sentences, and one is empty. Give two texts.")
    return sentences


def _matches(first: list[str], second: list[str], scores: Scores) -> SentenceMatches:
    """Return the best matches in both directions, from scores ``(first, second)``."""
    first_matches = tuple(_best(text, second, row) for text, row in zip(first, scores, strict=True))
    second_matches = tuple(_best(text, first, row) for text, row in zip(second, scores.T, strict=True))
    means = [np.mean([match.score for match in matches]) for matches in (first_matches, second_matches)]
    return SentenceMatches(float((means[0] + means[1]) / 2), first_matches, second_matches)


def _best(text: str, candidates: list[str], scores: Scores) -> Match:
    """Return the most similar candidate of a sentence; among ties an equal sentence comes first."""
    index = int(in_order(scores, np.arange(len(candidates)), same_as(text, candidates))[0])
    return Match(text, candidates[index], float(scores[index]))
