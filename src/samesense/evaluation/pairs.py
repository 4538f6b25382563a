"""Judge what scores pairs on a data set of labelled pairs, with everything that changes the number in its protocol."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer

from samesense.data import PairData
from samesense.encoder.candidates import encoder_protocol
from samesense.encoder.cosine import cosine_score
from samesense.encoder.encode import as_encode
from samesense.evaluation.result_builder import split_of
from samesense.evaluation.sts import evaluate_sts
from samesense.types import Candidate, Precision, Result


def judge_pairs(
    model: SentenceTransformer,
    data: PairData,
    *,
    name: str,
    seed: int | None = None,
    precision: Precision = "float32",
    intervals: bool = True,
) -> list[Result]:
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
    return judge_candidate(candidate, data, name=name, intervals=intervals)


def judge_candidate(candidate: Candidate, data: PairData, *, name: str, intervals: bool = True) -> list[Result]:
    """Return Spearman and Pearson of a candidate's scores with the labels, whole and by subset.

    Args:
        candidate: anything that scores pairs.
        data: labelled pairs.
        name: what to call the candidate in the results.
        intervals: compute bootstrap intervals.
    """
    return evaluate_sts(
        candidate.score,
        data.pairs(),
        data.labels,
        dataset=data.name,
        split=split_of(data.name),
        subsets=data.subsets,
        model=name,
        protocol=candidate.protocol,
        seed=candidate.seed,
        intervals=intervals,
    )
