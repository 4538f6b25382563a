"""Judge a model on labelled pairs."""

from __future__ import annotations

from samesense.evaluation.sts import evaluate_sts

__all__ = ["evaluate_sts"]
