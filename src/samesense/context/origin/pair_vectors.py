"""The vectors of pairs over their contexts, from just the cells that they need."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from samesense.context.corpus.corpus import Corpus
from samesense.context.generator.base import Cells
from samesense.context.origin.scheme import Scheme
from samesense.context.origin.similarity import Statistics, fit, vector
from samesense.context.origin.terms import Terms
from samesense.errors import DataError
from samesense.types import Floats, Indices, Pair


class PairVectors:
    """Vectors v of Eq. 4: each sentence over the context sets of both.

    Args:
        corpus: of the contexts.
        terms: computes Eq. 3's.
        reference: sentences that say what is usual.
        scheme: how to score.
        pairs: whose vectors will be asked for.
        sets: context set of every sentence.

    Attributes:
        undefined: contexts left out, because a term does not vary over the reference.
    """

    def __init__(
        self,
        corpus: Corpus,
        terms: Terms,
        reference: Sequence[str],
        scheme: Scheme,
        pairs: Sequence[Pair],
        sets: Mapping[str, Indices],
    ) -> None:
        self._scheme, self._sets = scheme, sets
        self._rows = {text: row for row, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
        self._windows = np.unique(np.concatenate([sets[text] for text in self._rows]))
        windows = corpus.windows_at(self._windows)
        self._usual: Statistics | None = None
        self._defined = np.ones(len(windows), dtype=np.bool_)
        if self._scheme.normalisation in ("standardised", "both"):
            self._usual = terms.statistics(windows, reference)
            self._defined = self._usual.defined(self._scheme.weights)
        self.undefined = int((~self._defined).sum())
        wanted = [self._rows[text] * len(windows) + self._columns(pair) for pair in pairs for text in pair]
        self._keys = np.unique(np.concatenate(wanted))
        rows, columns = np.divmod(self._keys, len(windows))
        values = terms.values(Cells(list(self._rows), windows, rows, columns))
        if self._usual is not None:
            values = self._usual.standardise(values, columns)
        self._fits = fit(values, self._scheme.weights)

    def vectors(self, pair: Pair) -> tuple[Indices, Floats, Floats]:
        """Return the windows of a pair, and the vectors of both sentences over them."""
        columns = self._columns(pair)
        fits = [
            self._fits[np.searchsorted(self._keys, self._rows[text] * len(self._windows) + columns)] for text in pair
        ]
        first, second = (vector(values, self._scheme.normalisation) for values in fits)
        return self._windows[columns], first, second

    def _columns(self, pair: Pair) -> Indices:
        ids = np.concatenate([self._sets[text] for text in pair])
        columns = np.searchsorted(self._windows, ids if self._scheme.twice else np.unique(ids))
        kept = columns[self._defined[columns]]
        if not len(kept):
            raise DataError(
                f"In none of the {len(ids)} contexts of {pair[0][:60]!r} and {pair[1][:60]!r} do all terms vary over "
                "the reference sentences. Take a larger reference."
            )
        return kept
