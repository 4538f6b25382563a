"""Scores of a shard by Origin, each shard computed by itself; pairs without a score are told apart from faults."""

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
    """What became of some pairs."""

    rows: Indices  # which have a score, (n,), ascending
    scores: Floats  # theirs, (n,)
    undefined: dict[str, int]  # of the others, how many for each reason
    cells: int  # terms of a generator that were computed


class OriginScorer:
    """Origin with nothing kept from one shard to the next.

    A cell's last bits depend on the cells computed beside it. So that a shard is the same whoever makes it and after
    whatever else, all its cells are computed for it alone; nor does memory grow. Torch and numpy's linear algebra
    compute on one thread, since sums are ordered otherwise on several.
    """

    def __init__(self, origin: Origin) -> None:
        self.corpus, self.tfidf, self._parts = origin.corpus, origin.sets.tfidf, origin
        self.identity = _identity(origin)

    def score(self, pairs: Sequence[Pair]) -> Scored:
        """Score pairs, those of equal sentences sharing what they need."""
        from threadpoolctl import threadpool_limits

        with torch_threads(1), threadpool_limits(1, user_api="blas"):
            return score_pairs(self._fresh(), pairs)

    def _fresh(self) -> Origin:
        parts = self._parts
        return Origin(
            self.corpus, self.tfidf, parts.terms.discriminator, parts.generator, parts.scheme,
            reference=parts.reference,
        )  # fmt: skip


def open_scorer(folder: Path, device: str) -> OriginScorer:
    """Open an Origin folder to harvest from; raises as :meth:`samesense.context.origin.origin.Origin.open`."""
    return OriginScorer(Origin.open(folder, device=device))


def score_pairs(origin: Origin, pairs: Sequence[Pair]) -> Scored:
    """Return the score of each pair that has one; what was computed is kept as the Origin keeps it."""
    undefined: Counter[str] = Counter()
    origin.terms.note_unread([text for pair in pairs for text in pair])
    sets = _sets(origin, pairs)
    rows, scores = [], []
    for start in range(0, len(pairs), BLOCK_PAIRS):
        numbers = range(start, min(len(pairs), start + BLOCK_PAIRS))
        block = [at for at in numbers if all(text in sets for text in pairs[at])]
        undefined[NO_CONTEXT] += len(numbers) - len(block)
        for at, score in _block(origin, pairs, block, sets):
            if isinstance(score, str):
                undefined[score] += 1
            else:
                rows.append(at)
                scores.append(score)
    return Scored(np.array(rows, dtype=np.int64), np.array(scores), dict(+undefined), origin.terms.computed)


def _sets(origin: Origin, pairs: Sequence[Pair]) -> dict[str, Indices]:
    """Return the context sets of all sentences that have one."""
    texts = list(dict.fromkeys(text for pair in pairs for text in pair))
    try:
        return origin.sets.of(texts)
    except NoContextError:
        found: dict[str, Indices] = {}
    for text in texts:
        with contextlib.suppress(NoContextError):
            found |= origin.sets.of([text])
    return found


def _block(
    origin: Origin, pairs: Sequence[Pair], block: Sequence[int], sets: dict[str, Indices]
) -> list[tuple[int, float | str]]:
    """Return the score of each pair, or why it has none."""
    varying = _varying(origin, pairs, block, sets)
    outcomes: list[tuple[int, float | str]] = [(at, NOTHING_VARIES) for at in block if at not in varying]
    if not varying:
        return outcomes
    view = PairVectors(
        origin.corpus, origin.terms, origin.reference, origin.scheme, [pairs[at] for at in sorted(varying)], sets
    )
    for at in sorted(varying):
        _, first, second = view.vectors(pairs[at])
        outcomes.append((at, cosine(first, second, pairs[at]) if first.any() and second.any() else NO_COSINE))
    return outcomes


def _varying(origin: Origin, pairs: Sequence[Pair], block: Sequence[int], sets: dict[str, Indices]) -> set[int]:
    """Return the pairs that have a context in which every term that counts varies over the reference."""
    if origin.scheme.normalisation not in ("standardised", "both") or not block:
        return set(block)
    ids = np.unique(np.concatenate([sets[text] for at in block for text in pairs[at]]))
    usual = origin.terms.statistics(origin.corpus.windows_at(ids), origin.reference)
    defined = ids[usual.defined(origin.scheme.weights)]
    has = {text: bool(np.isin(sets[text], defined).any()) for text in {t for at in block for t in pairs[at]}}
    return {at for at in block if has[pairs[at][0]] or has[pairs[at][1]]}


def _identity(origin: Origin) -> dict[str, str]:
    tfidf = origin.sets.tfidf
    parts = {
        "corpus": origin.corpus.sha256,
        "windows": asdict(origin.corpus.shape),
        "screening": tfidf.folder.name,
        "discriminator": origin.terms.discriminator.encoder.identity(),
        "generator": origin.generator.identity,
        "scheme": asdict(origin.scheme),
        "reference": origin.reference,
    }
    return {name: json_hash(part) for name, part in parts.items()}
