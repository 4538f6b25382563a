"""Origin: two sentences are alike if they fit, and do not fit, the same contexts."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import Field

from samesense.context.corpus.corpus import Corpus, Shape
from samesense.context.generator.base import Cells, Generator, NoGenerator
from samesense.context.origin.context_set import ContextSets
from samesense.context.origin.explain import Contribution, Explanation, Whose
from samesense.context.origin.scheme import Scheme, reference_sentences
from samesense.context.origin.similarity import Normalisation, Statistics, contributions, cosine, fit, vector
from samesense.context.origin.terms import Terms
from samesense.context.retrieval.tfidf import Tfidf
from samesense.errors import DataError
from samesense.execution.progress import progress_bar
from samesense.schemas import Record, read_object
from samesense.types import Floats, Indices, Pair, Scores

if TYPE_CHECKING:
    from samesense.context.discriminator.encoder import Discriminator

BLOCK_PAIRS = 2000
"""Pairs whose terms are held at once."""

FILE = "origin.json"


class Origin:
    """A :data:`~samesense.types.Score` that asks a corpus.

    Source: Sun et al. 2022 (TACL), section 3.3.
    Differs: terms are standardised in each context by default, see
        :func:`~samesense.context.origin.similarity.vector`.

    Args:
        corpus: where contexts come from.
        tfidf: index over this corpus.
        discriminator: over this corpus.
        generator: gives the generative terms.
        scheme: how to score.
        folder: where everything that was computed is kept by content; ``None`` keeps it in memory.
        reference: sentences that say what is usual; ``None`` draws them from the corpus as the scheme says.

    Attributes:
        undefined: contexts left out of the vectors of the last call, because a term did not vary over the reference.
    """

    def __init__(
        self,
        corpus: Corpus,
        tfidf: Tfidf,
        discriminator: Discriminator,
        generator: Generator,
        scheme: Scheme,
        *,
        folder: Path | None = None,
        reference: Sequence[str] | None = None,
    ) -> None:
        self.corpus = corpus
        self.generator = generator
        self.scheme = scheme
        if reference is not None:
            self.reference = list(reference)
        else:
            self.reference = reference_sentences(corpus, scheme.reference, scheme.seed)
        cells = None if folder is None else folder / "cells"
        self.terms = Terms(discriminator, generator, scheme.weights, cells, right_given=scheme.right_given)
        sets = None if folder is None else folder / "sets"
        self.sets = ContextSets(corpus, tfidf, self.terms, self.reference, scheme.selection, sets)
        self.undefined = 0

    @classmethod
    def open(
        cls,
        folder: Path,
        *,
        scheme: Scheme | None = None,
        device: str = "cpu",
    ) -> Origin:
        """Open a folder that the recipe has made.

        Args:
            folder: holds ``origin.json``.
            scheme: another than the folder's own, for ablations; what it shares with others is not computed again.
            device: torch device.

        Raises:
            DataError, ModelError: if a part is missing or damaged.
        """
        # Each kind of Origin loads the models that it has, and no others.
        from samesense.context.discriminator.encoder import Discriminator

        content = origin_content(folder)
        corpus = Corpus(folder / "corpus", Shape(**content["shape"]))
        scheme = scheme or Scheme.from_dict(content["scheme"])
        generative = scheme.weights.generative
        return cls(
            corpus,
            Tfidf(corpus, folder / "index", unigrams=content["unigrams"]),
            Discriminator.open(folder / "discriminator", corpus, folder / "index", device=device),
            _open_generator(folder, content, device) if generative else NoGenerator(),
            scheme,
            folder=folder / "cache",
        )

    @property
    def protocol(self) -> str:
        """Everything that changes a score, in words."""
        scheme = self.scheme
        selection = self.scheme.selection
        names = {}
        if scheme.right_given == "sentence":
            names = {"right": "right given the sentence alone"}
        weights = asdict(scheme.weights).items()
        terms = ", ".join(f"{names.get(name, name)} {value:g}" for name, value in weights if value)
        return (
            f"Origin: cosine over {selection.size} contexts a sentence ({selection.strategy}, {selection.by} fits of "
            f"{selection.rescored}), {scheme.normalisation}; weights {terms}; corpus of {len(self.corpus)} sentences; "
            f"{self.generator.protocol}"
        )

    def __call__(self, pairs: Sequence[Pair]) -> Scores:
        """Return the similarity of each pair, ``(pairs,)``.

        Raises:
            DataError: if a sentence is blank, or has no context.
            ModelError: if a cosine is undefined.
        """
        self._check(pairs)
        self.terms.note_unread([text for pair in pairs for text in pair])
        self.undefined = 0
        scores = np.empty(len(pairs), dtype=np.float64)
        sets = self.sets.of([text for pair in pairs for text in pair])
        with progress_bar("score", "pair", len(pairs), leave=False, inner=True) as bar:
            for start in range(0, len(pairs), BLOCK_PAIRS):
                block = pairs[start : start + BLOCK_PAIRS]
                view = self._view(block, sets)
                for index, pair in enumerate(block, start):
                    _, first, second = view.vectors(pair)
                    scores[index] = cosine(first, second, pair)
                self.undefined += view.undefined
                bar.update(len(block))
        return scores

    def explain(self, first: str, second: str, *, top: int = 5) -> Explanation:
        """Return the similarity of two sentences with the contexts that made it."""
        pair = (first, second)
        self._check([pair])
        self.terms.note_unread(pair)
        sets = self.sets.of(pair)
        ids, first_fits, second_fits = self._view([pair], sets).vectors(pair)
        shares = contributions(first_fits, second_fits, pair)
        distinct, inverse = np.unique(ids, return_inverse=True)
        summed = np.bincount(inverse, shares)
        # A window in both sets comes twice, with the same fits, so that the first place is enough.
        positions = np.array([int(np.argmax(ids == i)) for i in distinct])

        def entry(k: int) -> Contribution:
            i = int(distinct[k])
            return Contribution.of(
                self.corpus.window(i),
                _whose(i, sets[first], sets[second]),
                float(first_fits[positions[k]]),
                float(second_fits[positions[k]]),
                float(summed[k]),
            )

        order = np.argsort(-summed, kind="stable")
        return Explanation(
            sentences=pair,
            score=cosine(first_fits, second_fits, pair),
            contexts=len(ids),
            alike=[entry(k) for k in order[:top] if summed[k] > 0],
            apart=[entry(k) for k in order[::-1][:top] if summed[k] < 0],
        )

    def normalised(self, normalisation: Normalisation) -> Origin:
        """Return the same with another normalisation; what is computed is shared."""
        origin = copy.copy(self)
        origin.scheme = replace(self.scheme, normalisation=normalisation)
        return origin

    def _view(self, pairs: Sequence[Pair], sets: dict[str, Indices]) -> PairVectors:
        return PairVectors(self.corpus, self.terms, self.reference, self.scheme, pairs, sets)

    def _check(self, pairs: Sequence[Pair]) -> None:
        for row, pair in enumerate(pairs):
            if not all(text.strip() for text in pair):
                raise DataError(f"A pair needs two texts; pair {row} has an empty one: {pair!r}. Leave it out.")


class OriginRecord(Record):
    """What ``origin.json`` holds."""

    contexts: Literal["words", "retrieved"]
    shape: dict[str, int] = Field(default_factory=dict)
    language_model: str | None = None
    precision: Literal["float32", "bfloat16"] = "float32"
    scheme: dict[str, Any] = Field(default_factory=dict)
    unigrams: bool = False
    prompt: str = ""
    own_layer: int = 0
    state_layer: int = 0
    reader: str = ""
    reference: str = ""


def origin_content(folder: Path) -> dict[str, Any]:
    """Return what the recipe wrote of an Origin; DataError if the folder holds none."""
    if not (folder / FILE).is_file():
        raise DataError(
            f"{folder} is no finished Origin: it has no {FILE}. Make one from documents with: samesense origin."
        )
    return read_object(folder / FILE, OriginRecord)


def _open_generator(folder: Path, content: dict[str, Any], device: str) -> Generator:
    if content["language_model"] is not None:
        from samesense.context.generator.language_models import open_language_model

        return open_language_model(content["language_model"], precision=content["precision"], device=device)
    if not (folder / "generator").exists():
        raise DataError(
            f"{folder} has no generator: it was made with weights of 0 for its terms, or is damaged. Make one with "
            "samesense origin, the same documents and settings, and a weight above 0."
        )
    from samesense.context.generator.seq2seq import open_seq2seq

    return open_seq2seq(folder / "generator", precision=content["precision"], device=device)


def _whose(window: int, first: Indices, second: Indices) -> Whose:
    in_first = bool((first == window).any())
    in_second = bool((second == window).any())
    if in_first and in_second:
        return "both"
    if in_first:
        return "first"
    return "second"


class PairVectors:
    """Vectors v of Eq. 4: each sentence over the context sets of both.

    ``undefined`` counts the contexts left out, because a term does not vary over the reference.
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
        self._scheme = scheme
        self._sets = sets
        self._rows = {text: row for row, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
        self._windows = np.unique(np.concatenate([sets[text] for text in self._rows]))
        windows = corpus.windows_at(self._windows)
        self._usual: Statistics | None = None
        self._defined = np.ones(len(windows), dtype=np.bool_)
        if self._scheme.normalisation in ("standardised", "both"):
            self._usual = terms.statistics(windows, reference)
            self._defined = self._usual.defined(self._scheme.weights)
        self.undefined = int((~self._defined).sum())
        # A cell is one number, so that a cell that several pairs share is computed once.
        pair_keys = [self._rows[text] * len(windows) + self._columns(pair) for pair in pairs for text in pair]
        self._keys = np.unique(np.concatenate(pair_keys))
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
        defined = columns[self._defined[columns]]
        if not len(defined):
            raise DataError(
                f"In none of the {len(ids)} contexts of {pair[0][:60]!r} and {pair[1][:60]!r} do all terms vary over "
                "the reference sentences. Take a larger reference."
            )
        return defined
