"""The contexts in which a sentence is looked at: screened, ranked, scored, and chosen to differ from each other."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import sparse

from samesense.context.corpus.corpus import Corpus
from samesense.context.corpus.words import text_keys, words
from samesense.context.generator.base import Cells
from samesense.context.origin.cache import ArrayCache
from samesense.context.origin.similarity import fit
from samesense.context.origin.terms import Terms
from samesense.context.retrieval.postings import top_k
from samesense.context.retrieval.tfidf import Tfidf
from samesense.errors import ConfigError, DataError
from samesense.types import Floats, Indices

Strategy = Literal["diverse", "no-diversity", "random"]

BLOCK_SEARCHES = 32
"""Sentences whose screened windows, up to all of the corpus, are held and ranked at once."""

BLOCK_SENTENCES = 4096
"""Sentences whose sets are made together: those in one context share its computation."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """How a context set is chosen.

    Source: Sun et al. 2022 (TACL), section 3.3; the variants are those of section 5.4.
    Differs: the paper does not say how many contexts reach Eq. 3; ``rescored`` of those that the discriminator ranks
        highest do. Without diversity, neither the bound of one context a chunk nor that of Jaccard holds.

    Attributes:
        size: contexts of a sentence, at most.
        screened: text chunks that screening finds, at most.
        rescored: contexts scored by Eq. 3, at most.
        jaccard: the words of the sentences just before two chosen contexts overlap by less than this.
        strategy: ``"diverse"`` for the paper's way, ``"no-diversity"`` without its two bounds, ``"random"`` for any
            contexts of the corpus.
        by: Eq. 3 with its terms as they are (``"raw"``, the paper's), or standardised in their contexts, which asks for
            statistics of every context that is scored.
        seed: of the random strategy.
    """

    size: int = 500
    screened: int = 20000
    rescored: int = 2000
    jaccard: float = 0.5
    strategy: Strategy = "diverse"
    by: Literal["raw", "standardised"] = "raw"
    seed: int = 42

    def __post_init__(self) -> None:
        if not 1 <= self.size <= self.rescored or self.screened < 1 or not 0 < self.jaccard <= 1:
            raise ConfigError(
                "A context set has 1 context or more, at most as many as are scored (rescored), and jaccard lies above "
                f"0, at most at 1; received {self}."
            )


class NoContextError(DataError):
    """A sentence has no context in a corpus."""


class ContextSets:
    """Makes and keeps the context set of every sentence that is asked for.

    ``short`` counts the sentences of the last call with fewer contexts than asked for, ``widened`` those of all calls
    for which the discriminator ranked all windows, because screening found too few.
    """

    def __init__(
        self,
        corpus: Corpus,
        tfidf: Tfidf,
        terms: Terms,
        reference: Sequence[str],
        selection: Selection,
        folder: Path | None = None,
    ) -> None:
        self.corpus = corpus
        self.tfidf = tfidf
        self.terms = terms
        self.selection = selection
        self.reference = list(reference)
        self.short = 0
        self.widened = 0
        self._sets = ArrayCache(folder, self._identity())
        self._previous: dict[int, frozenset[str]] = {}

    def of(self, sentences: Sequence[str]) -> dict[str, Indices]:
        """Return the context set of each distinct sentence: numbers of windows, the best fitting first."""
        cached: dict[str, Indices] = {}
        missing = []
        for sentence in dict.fromkeys(sentences):
            stored = self._sets.find(sentence)
            if stored is None:
                missing.append(sentence)
            else:
                cached[sentence] = stored
        for start in range(0, len(missing), BLOCK_SENTENCES):
            block = missing[start : start + BLOCK_SENTENCES]
            if self.selection.strategy == "random":
                sets = self._random(block)
            else:
                sets = self._chosen(block)
            for sentence, ids in zip(block, sets, strict=True):
                if not len(ids):
                    raise NoContextError(f"There is no context for {sentence[:60]!r} in {self.corpus.folder}.")
                self._sets.write(sentence, ids)
                cached[sentence] = ids
        self.short = sum(len(ids) < self.selection.size for ids in cached.values())
        return cached

    def candidates(self, sentences: Sequence[str]) -> list[Indices]:
        """Return the windows of each sentence that are scored by Eq. 3, in the order of the discriminator.

        Where screening finds fewer than a set takes, all windows of the corpus are ranked.
        """
        blocks = (sentences[start : start + BLOCK_SEARCHES] for start in range(0, len(sentences), BLOCK_SEARCHES))
        return [ranked for block in blocks for ranked in self._ranked(block)]

    def _ranked(self, sentences: Sequence[str]) -> list[Indices]:
        windows = self.corpus.windows
        pools = self.tfidf.search(sentences, self.selection.screened)
        for row, sentence_key in enumerate(text_keys(sentences)):
            # The windows in which a sentence stands are no evidence of where else it fits.
            pools[row] = self.corpus.without(pools[row], sentence_key)
            if len(pools[row]) < min(self.selection.size, len(windows)):
                pools[row] = self.corpus.without(windows, sentence_key)
                self.widened += 1
        return self.terms.ranked(sentences, pools, self.selection.rescored)

    def _chosen(self, sentences: Sequence[str]) -> list[Indices]:
        candidates = self.candidates(sentences)
        # Sentences share candidates, whose texts are read once.
        ids, columns = np.unique(np.concatenate(candidates), return_inverse=True)
        counts = np.array([len(windows) for windows in candidates])
        rows = np.repeat(np.arange(len(sentences), dtype=np.int64), counts)
        scores = self._scores(Cells(sentences, self.corpus.windows_at(ids), rows, columns))
        return [
            self._greedy(windows, window_scores)
            for windows, window_scores in zip(candidates, np.split(scores, np.cumsum(counts)[:-1]), strict=True)
        ]

    def _scores(self, cells: Cells) -> Floats:
        """Return Eq. 3 of all cells; minus infinity where a standardised term is undefined."""
        values = self.terms.values(cells)
        if self.selection.by == "raw":
            return fit(values, self.terms.weights)
        usual = self.terms.statistics(cells.windows, self.reference)
        scores = fit(usual.standardise(values, cells.columns), self.terms.weights)
        return np.where(usual.defined(self.terms.weights)[cells.columns], scores, -np.inf)

    def _greedy(self, ids: Indices, scores: Floats) -> Indices:
        # Ties go to the lower window, so that the order of the candidates does not count.
        ascending = np.argsort(ids)
        ranked = ids[ascending][top_k(scores[ascending], int(np.isfinite(scores).sum()))]
        if self.selection.strategy == "no-diversity":
            return ranked[: self.selection.size]
        taken = diverse(
            [self._words_before(int(i)) for i in ranked],
            self.corpus.chunks_of(ranked),
            self.selection.size,
            self.selection.jaccard,
        )
        return ranked[taken]

    def _words_before(self, window: int) -> frozenset[str]:
        if window not in self._previous:
            self._previous[window] = frozenset(words(self.corpus.sentence(window - 1)))
        return self._previous[window]

    def _random(self, sentences: Sequence[str]) -> list[Indices]:
        """Return random windows for each sentence, the same for a sentence in any batch."""
        sets = []
        windows = self.corpus.windows
        for sentence_key in text_keys(sentences):
            # As many more are drawn as the sentence has windows, since these are taken out.
            held = len(windows) - len(self.corpus.without(windows, sentence_key))
            drawn = self.corpus.random_windows(
                int(sentence_key) ^ self.selection.seed, min(len(windows), self.selection.size + held)
            )
            sets.append(self.corpus.without(drawn, sentence_key)[: self.selection.size])
        return sets

    def _identity(self) -> str:
        """Return all that decides a set."""
        shape = asdict(self.corpus.shape)
        identity: dict[str, object] = {
            "corpus": self.corpus.sha256,
            "shape": shape,
            "selection": asdict(self.selection),
        }
        # Random sets depend on the corpus and the seed alone.
        if self.selection.strategy != "random":
            identity |= {
                "screening": self.tfidf.identity,
                "discriminator": self.terms.discriminator.encoder.identity(),
                "generator": self.terms.generator.identity,
            }
            identity |= {"weights": self.terms.weights.values(), "right_given": self.terms.right_given}
        if self.selection.by == "standardised":
            identity |= {"reference": self.reference}
        return json.dumps(identity)


def diverse(previous: Sequence[frozenset[str]], chunks: Indices, size: int, jaccard: float) -> Indices:
    """Return which of the ranked contexts are taken, one after the other, ``(at most size,)``.

    A context is passed over if one from its chunk was taken, or if the words of its previous sentence overlap with
    those of a taken one by ``jaccard`` or more. Two sentences without a word count as the same.

    Source: Sun et al. 2022 (TACL), section 3.3.
    """
    vocabulary = {
        word: index
        for index, word in enumerate(dict.fromkeys(word for context_words in previous for word in context_words))
    }
    sizes = np.array([len(context_words) for context_words in previous], dtype=np.int64)
    columns = [vocabulary[word] for context_words in previous for word in context_words]
    starts = np.concatenate([[0], np.cumsum(sizes)])
    has = sparse.csr_matrix((np.ones(len(columns)), columns, starts), shape=(len(previous), len(vocabulary)))
    free = np.ones(len(previous), dtype=np.bool_)
    taken: list[int] = []
    for index in range(len(previous)):
        if not free[index]:
            continue
        taken.append(index)
        if len(taken) == size:
            break
        selected = np.zeros(len(vocabulary))
        selected[columns[starts[index] : starts[index + 1]]] = 1
        # One sparse product gives the words shared with every candidate.
        shared = has @ selected
        # Multiplied out instead of divided: of two sentences without a word, 0 < 0 says that they are the same.
        free &= (chunks != chunks[index]) & (shared < jaccard * (sizes + sizes[index] - shared))
    return np.array(taken, dtype=np.int64)
