"""Evaluates models that embed texts or score pairs."""

from __future__ import annotations

from samesense.evaluation.averages import averages
from samesense.evaluation.run import EvaluatedModel, Evaluations, Failure, evaluate_candidates
from samesense.evaluation.sts import evaluate_pairs
from samesense.evaluation.suites import SUITES, FoundTasks, find_tasks

__all__ = [
    "SUITES",
    "EvaluatedModel",
    "Evaluations",
    "Failure",
    "FoundTasks",
    "averages",
    "evaluate_candidates",
    "evaluate_pairs",
    "find_tasks",
]
