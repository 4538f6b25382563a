"""Similarity of documents by their sentences: how well each finds its like in the other document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from samesense.data.documents import split_paragraphs, split_sentences
from samesense.data.formats.lines import without_breaks
from samesense.errors import ConfigError, DataError
from samesense.inference.models.model import Model
from samesense.inference.search.ties import in_order, same_as
from samesense.results import Shown
from samesense.types import Pair, Scores


class Match(NamedTuple):
    """A sentence, the one of the other document that is most like it, and their score."""

    text: str
    best: str
    score: float


@dataclass(frozen=True, repr=False)
class SentenceMatches(Shown):
    """The score of two documents, with what each of their sentences matches. Prints as a table.

    Attributes:
        score: the mean over both directions.
        first: of each sentence of the first document, in order.
        second: of each sentence of the second.
    """

    score: float
    first: tuple[Match, ...]
    second: tuple[Match, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain JSON types."""
        content = asdict(self)
        return {**content, **{name: [match._asdict() for match in content[name]] for name in ("first", "second")}}

    def table(self) -> str:
        """Lay it out as plain text: the score of each sentence, the sentence, and the one that it matches."""
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
    """Compare documents by their sentences.

    With s_ij the score of sentence i of the first document and j of the second, the score of the documents is the mean
    of mean_i max_j s_ij and mean_j max_i s_ij. It is the same in either order if the model's scores are.

    Source: Mihalcea, Corley and Strapparava (2006), "Corpus-based and knowledge-based measures of text semantic
    similarity", equation 1.
    Differs: sentences in the place of words, and all of the same weight.

    Args:
        model: whatever scores pairs; each distinct sentence is encoded once.
        pairs: of documents, as texts; see :func:`~samesense.data.documents.split_sentences`.

    Raises:
        DataError: if a document is empty.
        MissingExtraError: if nupunkt is absent, which splits English.
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
    """Raise ConfigError if a score by sentences is wanted on a scale that was fitted on whole texts."""
    if calibrated:
        raise ConfigError("A calibration is that of whole texts; received `by` sentences. Leave out one of the two.")


def _sentences(text: str) -> list[str]:
    sentences = [sentence for paragraph in split_paragraphs(text) for sentence in split_sentences(paragraph)]
    if not sentences:
        raise DataError("Documents are compared by their sentences, and one is empty. Give two texts.")
    return sentences


def _matches(first: list[str], second: list[str], scores: Scores) -> SentenceMatches:
    """Return the best matches of either side, of scores ``(first, second)``."""
    forth = tuple(_best(text, second, row) for text, row in zip(first, scores, strict=True))
    back = tuple(_best(text, first, row) for text, row in zip(second, scores.T, strict=True))
    score = (np.mean([match.score for match in forth]) + np.mean([match.score for match in back])) / 2
    return SentenceMatches(float(score), forth, back)


def _best(text: str, others: list[str], scores: Scores) -> Match:
    """Return the sentence that is most like one, of equal ones the same sentence."""
    index = int(in_order(scores, np.arange(len(others)), same_as(text, others))[0])
    return Match(text, others[index], float(scores[index]))
