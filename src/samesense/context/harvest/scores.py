"""Scores the pairs of a shard by an Origin, each shard by itself; pairs without a defined score are counted."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from samesense.context.origin.context_set import NoContextError
from samesense.context.origin.origin import BLOCK_PAIRS, Origin, PairVectors
from samesense.context.origin.similarity import cosine
from samesense.execution.threads import torch_threads
from samesense.hashes import json_hash
from samesense.types import Floats, Indices, Pair

NO_CONTEXT = "a sentence has no context"
NOTHING_VARIES = "in no context do all terms vary over the reference"
NO_COSINE = "all fits of a sentence are alike"


@dataclass(frozen=True)
class Scored:
    """Scores of some pairs, and the reasons of those without one."""

    rows: Indices  # the pairs with a score, (n,), ascending
    scores: Floats  # their scores, (n,)
    undefined: dict[str, int]  # number of other pairs by reason
    cells: int  # generator terms that were computed


class OriginScorer:
    """Scores each shard with a new Origin, whose cache starts empty.

    A cell's last bits depend on the cells in its batch. Shards ignore each other's cache so that their bytes are
    reproducible, and memory does not grow. Torch and numpy's linear algebra compute on one thread, because several
    threads sum in another order.
    """

    def __init__(self, origin: Origin) -> None:
        self.corpus = origin.corpus
        self.tfidf = origin.sets.tfidf
        self._origin = origin
        self.identity = _identity(origin)

    def score(self, pairs: Sequence[Pair]) -> Scored:
        """Score pairs; pairs that share a sentence share its terms."""
        # scikit-learn brings it along; only workers that score need it.
        from threadpoolctl import threadpool_limits

        with torch_threads(1), threadpool_limits(1, user_api="blas"):
            return score_pairs(self._fresh(), pairs)

    def _fresh(self) -> Origin:
        origin = self._origin
        return Origin(
            self.corpus,
            self.tfidf,
            origin.terms.discriminator,
            origin.generator,
            origin.scheme,
            reference=origin.reference,
        )


def open_scorer(folder: Path, device: str) -> OriginScorer:
    """Open an Origin folder to harvest from; raises as :meth:`samesense.context.origin.origin.Origin.open`."""
    return OriginScorer(Origin.open(folder, device=device))


def score_pairs(origin: Origin, pairs: Sequence[Pair]) -> Scored:
    """Return the scores of the pairs that have one; computed terms stay in the Origin's cache."""
    undefined: Counter[str] = Counter()
    origin.terms.note_unread([text for pair in pairs for text in pair])
    sets = _sets(origin, pairs)
    rows = []
    scores = []
    for start in range(0, len(pairs), BLOCK_PAIRS):
        numbers = range(start, min(len(pairs), start + BLOCK_PAIRS))
        block = [row for row in numbers if all(text in sets for text in pairs[row])]
        undefined[NO_CONTEXT] += len(numbers) - len(block)
        for row, score in _block(origin, pairs, block, sets):
            if isinstance(score, str):
                undefined[score] += 1
            else:
                rows.append(row)
                scores.append(score)
    # The plus drops the reasons that no pair has.
    return Scored(np.array(rows, dtype=np.int64), np.array(scores), dict(+undefined), origin.terms.computed)


def _sets(origin: Origin, pairs: Sequence[Pair]) -> dict[str, Indices]:
    """Return the context sets of all sentences that have one."""
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    try:
        return origin.sets.of(texts)
    except NoContextError:
        sets: dict[str, Indices] = {}
    # One sentence without a context fails the whole call, so each is now asked for by itself.
    for text in texts:
        with contextlib.suppress(NoContextError):
            sets |= origin.sets.of([text])
    return sets


def _block(
    origin: Origin, pairs: Sequence[Pair], block: Sequence[int], sets: dict[str, Indices]
) -> list[tuple[int, float | str]]:
    """Return the score of each pair, or the reason why it has none."""
    varying = _varying(origin, pairs, block, sets)
    outcomes: list[tuple[int, float | str]] = [(row, NOTHING_VARIES) for row in block if row not in varying]
    if not varying:
        return outcomes
    view = PairVectors(
        origin.corpus, origin.terms, origin.reference, origin.scheme, [pairs[row] for row in sorted(varying)], sets
    )
    for row in sorted(varying):
        _, first, second = view.vectors(pairs[row])
        outcomes.append((row, cosine(first, second, pairs[row]) if first.any() and second.any() else NO_COSINE))
    return outcomes


def _varying(origin: Origin, pairs: Sequence[Pair], block: Sequence[int], sets: dict[str, Indices]) -> set[int]:
    """Return the pairs with a context in which every weighted term varies over the reference."""
    if origin.scheme.normalisation not in ("standardised", "both") or not block:
        return set(block)
    ids = np.unique(np.concatenate([sets[text] for row in block for text in pairs[row]]))
    usual = origin.terms.statistics(origin.corpus.windows_at(ids), origin.reference)
    defined = ids[usual.defined(origin.scheme.weights)]
    texts = {text for row in block for text in pairs[row]}
    varies = {text: bool(np.isin(sets[text], defined).any()) for text in texts}
    return {row for row in block if varies[pairs[row][0]] or varies[pairs[row][1]]}


def _identity(origin: Origin) -> dict[str, str]:
    tfidf = origin.sets.tfidf
    components = {
        "corpus": origin.corpus.sha256,
        "windows": asdict(origin.corpus.shape),
        "screening": tfidf.folder.name,
        "discriminator": origin.terms.discriminator.encoder.identity(),
        "generator": origin.generator.identity,
        "scheme": asdict(origin.scheme),
        "reference": origin.reference,
    }
    return {name: json_hash(component) for name, component in components.items()}
