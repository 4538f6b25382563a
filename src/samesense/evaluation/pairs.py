"""Judge an encoder on a data set of labelled pairs, with everything that changes the number in its protocol."""

from __future__ import annotations

from sentence_transformers import SentenceTransformer

from samesense.data import PairData
from samesense.encoder.cosine import cosine_score
from samesense.encoder.encode import as_encode
from samesense.encoder.pooling import describe_pooling
from samesense.encoder.precision import inference_precision
from samesense.evaluation.sts import evaluate_sts
from samesense.types import Precision, Result

SPLITS = ("train", "dev", "valid", "validation", "test")
"""Parts of a file name, between dots, that name a split."""


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
    arithmetic = inference_precision(precision, model.device)
    protocol = f"cosine, {describe_pooling(model)} pooling, {arithmetic}, at most {model.max_seq_length} tokens"
    return evaluate_sts(
        cosine_score(as_encode(model, precision=arithmetic)),
        data.pairs(),
        data.labels,
        dataset=data.name,
        split=next((part for part in data.name.split(".") if part in SPLITS), ""),
        subsets=data.subsets,
        model=name,
        protocol=protocol,
        seed=seed,
        intervals=intervals,
    )
