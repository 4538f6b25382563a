"""Judge anything that embeds texts or scores pairs."""

from __future__ import annotations

from samesense.evaluation.averages import averages
from samesense.evaluation.sts import evaluate_sts
from samesense.evaluation.suites import Found, find_tasks

__all__ = ["Found", "averages", "evaluate_sts", "find_tasks"]
