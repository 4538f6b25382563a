"""First selection: the chunks of a whole corpus that share words with a sentence, and the windows in them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from samesense.context.corpus.corpus import Corpus, spans
from samesense.context.corpus.words import text_keys
from samesense.context.retrieval.postings import (
    FORMAT,
    Postings,
    build_postings,
    counted,
    inverse_frequencies,
    term_weights,
    top_k,
)
from samesense.errors import ConfigError
from samesense.hashes import text_hash
from samesense.types import Floats, Indices

MOST_POSTINGS = 1_000_000
"""Postings that one search reads at most; some 40 times what a sentence needs in a corpus of two million words."""


class Tfidf:
    """Search by TF-IDF over an index that is made once and kept on the disk.

    A chunk is a vector of its terms, each weighted by 1 + ln(count) times ln((1 + chunks) / (1 + frequency)) + 1; a
    sentence is compared with whole chunks by cosine. Terms are pairs of neighbouring words and, by default, single
    words. Equal cosines are ordered by the number of the chunk.

    Source: Sun et al. 2022, section 3.3: "TF-IDF weighted bag-of-word bi-gram vectors" retrieve "related text chunks";
        the pipeline that it names as its model, Chen et al. 2017, "Reading Wikipedia to answer open-domain questions",
        counts words and bigrams. Weights: scikit-learn's ``TfidfVectorizer(sublinear_tf=True)``.
    Differs: keys of 64 bits instead of Chen et al.'s 2^24 bins. With pairs of words alone (``unigrams=False``), 46 % of
        the sentences of STS-B test match fewer than 500 of the 16,612 chunks of a corpus of two million words, and
        some match none; with single words nearly every sentence matches enough. The paper's corpus is 50,000 times as
        large.

    Args:
        corpus: where to search.
        folder: holds indexes of any corpora; that of this one, with these settings, is made if it is not there.
        unigrams: single words count as well as pairs.
        most_postings: a search reads the postings of the rarest terms of its sentence first and stops before it has
            read more than these, so that its cost has a bound however large the corpus grows. A result is exact where
            all terms are read.

    Attributes:
        identity: everything that decides what a search finds.

    Raises:
        ConfigError: if ``most_postings`` is below 1.
        DataError: if the index is damaged.
    """

    def __init__(
        self, corpus: Corpus, folder: Path, *, unigrams: bool = True, most_postings: int = MOST_POSTINGS
    ) -> None:
        if most_postings < 1:
            raise ConfigError(f"most_postings must be at least 1; received {most_postings}.")
        self.corpus = corpus
        self._unigrams = unigrams
        self._most = most_postings
        # How many postings a search reads does not change the index.
        index = [FORMAT, corpus.sha256, corpus.shape.chunk, unigrams]
        self.identity = json.dumps([*index, most_postings])
        self.folder = folder / f"screening-{text_hash(json.dumps(index))[:32]}"
        if not self.folder.exists():
            build_postings(self.folder, corpus.chunks, self._texts, unigrams=unigrams)
        self._postings = Postings(self.folder)

    def _texts(self, chunk: int) -> list[str]:
        start, end = self.corpus.chunk_bounds(np.array([chunk], dtype=np.int64))
        return self.corpus.sentences(range(int(start[0]), int(end[0])))

    def chunks(self, sentence: str, k: int) -> tuple[Indices, Floats]:
        """Return the best chunks for a sentence and their cosines, best first.

        There are ``k`` at most; fewer where fewer share a term with the sentence, none where none does.
        """
        if k < 1:
            raise ConfigError(f"At least 1 chunk must be asked for; received {k}.")
        keys, counts = counted([sentence], self._unigrams)
        hits, starts, ends = self._postings.find(keys)
        frequencies = ends - starts
        inverse = inverse_frequencies(self._postings.chunks, frequencies)
        weights = term_weights(counts[hits]) * inverse
        # Over all terms, also those that the bound leaves unread.
        length = np.sqrt(weights @ weights)
        read = self._rarest(frequencies)
        chunk_ids, values = self._postings.read(starts[read], ends[read])
        # Postings hold counts: a term's weight in the chunk has its inverse frequency as a factor too.
        values *= np.repeat(weights[read] * inverse[read], frequencies[read])
        ids, groups = np.unique(chunk_ids, return_inverse=True)
        cosines = np.bincount(groups, values, minlength=len(ids)) / (self._postings.norms[ids] * length)
        best = top_k(cosines, k)
        return ids[best].astype(np.int64), cosines[best]

    def _rarest(self, frequencies: Indices) -> Indices:
        """Return the terms to read, the rarest first: as many as the bound allows, and one at least."""
        order = np.argsort(frequencies, kind="stable")
        within = np.cumsum(frequencies[order]) <= self._most
        within[:1] = True
        return order[within]

    def search(self, sentences: Sequence[str], k: int) -> list[Indices]:
        """Return for each sentence the windows of its ``k`` best chunks, 20,000 in the paper: those of the best first.

        A window whose centre has the same words as the sentence is left out; there is none where no chunk shares a term
        with the sentence.
        """
        return [
            self._windows(self.chunks(sentence, k)[0], sentence_key)
            for sentence, sentence_key in zip(sentences, text_keys(sentences), strict=True)
        ]

    def _windows(self, chunks: Indices, sentence_key: np.uint64) -> Indices:
        ids = spans(*self.corpus.chunk_bounds(chunks))
        ids = ids[self.corpus.is_window(ids)]
        windows: Indices = ids[self.corpus.text_keys[ids] != sentence_key]
        return windows
