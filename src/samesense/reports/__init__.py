"""Store results and show them in tables, figures and reports."""

from __future__ import annotations

from samesense.reports.store import append_results, read_results
from samesense.reports.tables import markdown_table
from samesense.results.results import Results

__all__ = ["Results", "append_results", "markdown_table", "read_results"]
