"""Quantities computed from scores and labels, and how far to trust them."""

from __future__ import annotations

from samesense.metrics.correlation import pearson, spearman
from samesense.metrics.significance import PairedDifference, Statistic, bootstrap_interval, paired_bootstrap

__all__ = ["PairedDifference", "Statistic", "bootstrap_interval", "paired_bootstrap", "pearson", "spearman"]
