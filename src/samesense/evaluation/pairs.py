"""Evaluate a model on labelled pairs, with everything that changes the figures in their protocol."""

from __future__ import annotations

from dataclasses import replace

from sentence_transformers import SentenceTransformer

from samesense.data import PairData
from samesense.encoder.candidates import encoder_protocol
from samesense.encoder.cosine import cosine_score
from samesense.encoder.encode import as_encode
from samesense.evaluation.sts import StsTask
from samesense.results import Results
from samesense.types import Candidate, Precision


def evaluate_encoder(
    model: SentenceTransformer,
    data: PairData,
    *,
    name: str,
    seed: int | None = None,
    precision: Precision = "float32",
    intervals: bool = True,
) -> Results:
    """Return Spearman and Pearson of the model's cosines with the labels, whole and by subset.

    Args:
        model: the encoder.
        data: labelled pairs.
        name: what to call the model in the results.
        seed: seed of the training run behind the model, where known.
        precision: arithmetic; float32 keeps figures comparable between machines.
        intervals: compute bootstrap intervals.
    """
    candidate = Candidate(
        name=name,
        score=cosine_score(as_encode(model, precision=precision)),
        encode=None,
        protocol=encoder_protocol(model, precision),
        seed=seed,
    )
    return evaluate_pairs(candidate, data, intervals=intervals)


def evaluate_pairs(candidate: Candidate, data: PairData, *, name: str = "", intervals: bool = True) -> Results:
    """Return Spearman and Pearson of a candidate's scores with the labels, whole and by subset.

    Args:
        candidate: anything that scores pairs.
        data: labelled pairs.
        name: what to call the candidate in the results; its own name unless given.
        intervals: compute bootstrap intervals.

    Raises:
        DataError: if no score could correlate with the labels, or all scores are the same.
        ModelError: if there is not one finite score a pair.
    """
    named = replace(candidate, name=name or candidate.name)
    return Results(StsTask(data, intervals=intervals).evaluate(named).results)
