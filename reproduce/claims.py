"""Write README.md: what the papers claim, and what the runs here show of it.

python reproduce/claims.py          # rewrite README.md from claims.toml and the results
python reproduce/claims.py --check  # exit 1 if that would change it
"""

from __future__ import annotations

import sys
import tomllib

import numpy as np
from tables import HOME, comparisons_of, filled, rows_of

from samesense.errors import DataError
from samesense.reports.significance import Comparison
from samesense.reports.tables import markdown

NEAR = {"spearman": 1e-9, "accuracy": 1e-5}
"""Tolerance between a comparison and the figures: accuracies are means over folds, their test is over sentences."""


def claims() -> list[dict[str, str]]:
    """Return the claims, as ``claims.toml`` has them."""
    return tomllib.loads((HOME / "claims.toml").read_text(encoding="utf-8"))["claim"]


def compared(claim: dict[str, str]) -> Comparison:
    """Return the comparison behind a claim; raise if its difference or seeds do not follow from the runs."""
    paper = claim["page"].partition("/")[0]
    key = (claim["data"], claim["model"], claim["reference"])
    metric = claim.get("metric", "spearman")
    comparisons = comparisons_of(paper, claim["sweep"], metric=metric)
    by_key = {(comparison.dataset, comparison.model, comparison.reference): comparison for comparison in comparisons}
    if key not in by_key:
        raise DataError(f"claims.toml: {paper}/results/{claim['sweep']}.comparisons.jsonl has no comparison {key}.")
    comparison = by_key[key]
    rows = rows_of(paper, claim["sweep"])
    tests = {comparison.dataset} & {row["test"] for row in rows} or {
        row["test"] for row in rows
    }  # a mean covers all tests
    runs = {
        name: [row[metric] for row in rows if row["variant"] == name and row["test"] in tests]
        for name in (comparison.model, comparison.reference)
    }
    difference = np.mean(runs[comparison.model]) - np.mean(runs[comparison.reference])
    trained = [len({row["seed"] for row in rows if row["variant"] == name} - {None}) for name in runs]
    if abs(difference - comparison.difference) > NEAR[metric] or comparison.seeds != min(filter(None, trained)):
        raise DataError(f"claims.toml: the comparison {key} does not agree with the runs.")
    return comparison


def outcome(claim: dict[str, str], comparison: Comparison) -> str:
    """Return ``shown``, ``not shown`` or ``opposite``, qualified by ``in these runs`` where seeds are few."""
    if not comparison.significant:
        return "not shown"
    agrees = (comparison.difference > 0) == (claim["says"] == "above")
    return ("shown" if agrees else "opposite") + (" in these runs" if comparison.scope == "runs" else "")


def table() -> str:
    """Return the table of claims, one per line."""
    rows = []
    for claim in claims():
        comparison = compared(claim)
        difference = comparison.difference if claim["says"] == "above" else -comparison.difference
        rows.append(
            [
                f"[{claim['text']}]({claim['page']})",
                claim["paper"],
                f"{100 * difference:+.2f}",
                str(comparison.seeds),
                f"{comparison.adjusted:.2g}",
                outcome(claim, comparison),
            ]
        )
    header = ["claim", "the paper", "here, difference", "seeds", "p (Holm)", ""]
    return markdown(header, rows, numeric=("here, difference", "seeds", "p (Holm)"), marked=True)


def main() -> None:
    """Write the page, or check it."""
    page = HOME / "README.md"
    text = page.read_text(encoding="utf-8")
    updated = filled(text, table())
    if "--check" not in sys.argv[1:]:
        page.write_text(updated, encoding="utf-8")
    elif updated != text:
        sys.exit(1)


if __name__ == "__main__":
    main()
