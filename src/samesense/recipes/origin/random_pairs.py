"""How sentences that have nothing to do with each other score, by each normalisation: it shows which can be used."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import get_args

from samesense.context.harvest.scores import score_pairs
from samesense.context.origin.origin import Origin
from samesense.context.origin.scheme import Scheme, reference_sentences
from samesense.context.origin.similarity import Normalisation
from samesense.recipes.origin.settings import OriginSettings
from samesense.recipes.stages import Interrupted, Stages

STAGE = "random pairs"

REFERENCE = 32
"""Sentences that say what is usual here, at most: each is one more cell in every context."""


def score_random_pairs(stages: Stages, settings: OriginSettings, recorded: Mapping[str, object], device: str) -> None:
    """Say the mean score of random pairs by each normalisation; raises Interrupted."""
    if settings.random_sentences > 1:
        stage_inputs = {name: entry["inputs"] for name, entry in stages.record["stages"].items() if name != STAGE}
        inputs = {"sentences": settings.random_sentences, "origin": dict(recorded), "stages": stage_inputs}
        scheme = settings.scheme()
        stages.run(STAGE, inputs, [], lambda: _scored(stages.folder, scheme, settings.random_sentences, device))


def _scored(folder: Path, scheme: Scheme, count: int, device: str) -> list[str]:
    origin = Origin.open(folder, scheme=replace(scheme, reference=min(scheme.reference, REFERENCE)), device=device)
    # With the seed of the reference itself, the same sentences would be drawn.
    texts = reference_sentences(origin.corpus, min(count, len(origin.reference)), scheme.seed + 1)
    pairs = list(combinations(texts, 2))
    try:
        scores_by_name = {name: score_pairs(origin.normalised(name), pairs).scores for name in get_args(Normalisation)}
    except KeyboardInterrupt:
        raise Interrupted from None
    summaries = (
        f"{name} {scores.mean():.3f} ± {scores.std():.3f}" for name, scores in scores_by_name.items() if len(scores)
    )
    return [f"mean score of {len(pairs)} pairs by each normalisation: {', '.join(summaries) or 'none has a score'}"]
