"""Metrics of scores and labels or of embeddings, with intervals and significance tests."""

from __future__ import annotations

from samesense.metrics.classification import (
    accuracy_at,
    average_precision,
    best_threshold,
    f1_at,
    precision_at,
    recall_at,
)
from samesense.metrics.correlation import Statistic, pearson, spearman
from samesense.metrics.geometry import alignment, anisotropy, effective_rank, uniformity
from samesense.metrics.ranking import kendall, ndcg
from samesense.metrics.seeds import paired_seeds
from samesense.metrics.significance import (
    PairedDifference,
    bootstrap_interval,
    holm,
    mean_interval,
    paired_bootstrap,
    paired_mean,
)
from samesense.metrics.statistics import PairStatistic

__all__ = [
    "PairStatistic",
    "PairedDifference",
    "Statistic",
    "accuracy_at",
    "alignment",
    "anisotropy",
    "average_precision",
    "best_threshold",
    "bootstrap_interval",
    "effective_rank",
    "f1_at",
    "holm",
    "kendall",
    "mean_interval",
    "ndcg",
    "paired_bootstrap",
    "paired_mean",
    "paired_seeds",
    "pearson",
    "precision_at",
    "recall_at",
    "spearman",
    "uniformity",
]
