"""Write README.md: what the papers claim, and what the runs here show of it.

python reproduce/claims.py          # rewrite README.md from claims.toml and the results
python reproduce/claims.py --check  # exit 1 if that would change it
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from tables import HOME, comparisons_of, filled, rows_of

from samesense.errors import DataError
from samesense.metrics import holm
from samesense.reports.figures.differences import Difference, difference_figure
from samesense.reports.figures.plot import Plot, save_plot
from samesense.reports.significance import Comparison
from samesense.reports.tables import markdown

SHOWN, OPPOSITE = "shown", "opposite"
SMALLER, UNSEEN = "smaller than the paper's (excluded)", "could not be seen here"
OUTCOMES = (SHOWN, OPPOSITE, SMALLER, UNSEEN)
"""What runs may say of a claim. The third: not significant, and the interval lies below the paper's difference."""

FEW_SEEDS = ", in these runs"
"""Behind the outcome of fewer than five seeds, which speak of these runs and not of the methods."""

POWER = 1 + 0.8416 / 1.96
"""The effect that is seen with a probability of 80 %, in half widths of the 95 % interval, by normal quantiles."""

PAPERS = {"cosent": "CoSENT", "supmpn": "SupMPN", "rankcse": "RankCSE", "context": "Context similarity"}
"""Titles of the papers by their folder."""

PICTURE = HOME / "claims.svg"

HEADER = ["claim", "the paper", "here [95 %]", "visible", "seeds", "p (Holm)", ""]

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


def paper_effect(claim: dict[str, str]) -> float:
    """Return the difference that the paper has, in points, from the two figures of its row."""
    first, second = map(float, re.match(r"([\d.]+) against ([\d.]+)", claim["paper"]).groups())
    return abs(first - second)


def adjusted_by_paper(comparisons: Sequence[tuple[dict[str, str], Comparison]]) -> list[Comparison]:
    """Return the comparisons with p adjusted by Holm over the rows of one paper in this table."""
    adjusted: dict[int, float] = {}
    papers = [claim["page"].partition("/")[0] for claim, _ in comparisons]
    for paper in dict.fromkeys(papers):
        rows = [row for row, name in enumerate(papers) if name == paper]
        adjusted |= zip(rows, holm([comparisons[row][1].p_value for row in rows]), strict=True)
    return [replace(comparison, adjusted=adjusted[row]) for row, (_, comparison) in enumerate(comparisons)]


def in_direction_of_claim(claim: dict[str, str], comparison: Comparison) -> tuple[float, float, float]:
    """Return the difference and the ends of its interval in points, positive where the claim holds."""
    values = [100 * value for value in (comparison.difference, comparison.low, comparison.high)]
    if claim["says"] == "above":
        return values[0], values[1], values[2]
    return -values[0], -values[2], -values[1]


def least_visible(comparison: Comparison) -> float:
    """Return the effect, in points, that such runs show at the level of 5 % with a probability of 80 %."""
    return POWER * 50 * (comparison.high - comparison.low)


def outcome(claim: dict[str, str], comparison: Comparison) -> str:
    """Return what the runs say of a claim: one of :data:`OUTCOMES`, qualified where seeds are few."""
    difference, _, high = in_direction_of_claim(claim, comparison)
    if comparison.significant:
        word = SHOWN if difference > 0 else OPPOSITE
    else:
        word = SMALLER if high < paper_effect(claim) else UNSEEN
    return f"{word}{FEW_SEEDS}" if comparison.scope == "runs" else word


def figure() -> Plot:
    """Return the figure of all claims: each difference with its interval, and that of the paper."""
    pairs = [(claim, compared(claim)) for claim in claims()]
    panels: dict[str, list[Difference]] = {}
    for (claim, _), comparison in zip(pairs, adjusted_by_paper(pairs), strict=True):
        value, low, high = in_direction_of_claim(claim, comparison)
        row = Difference(
            label=claim["text"],
            value=value,
            low=low,
            high=high,
            significant=comparison.significant,
            published=paper_effect(claim),
        )
        panels.setdefault(PAPERS[claim["page"].partition("/")[0]], []).append(row)
    return difference_figure(
        panels,
        unit="points in the direction of the claim; diamonds: the paper",
        name="claims",
        caption="Each claim's difference with its 95 % interval, and that of the paper.",
    )


def table() -> str:
    """Return the table of claims, one per line, and the number of claims with each outcome."""
    pairs = [(claim, compared(claim)) for claim in claims()]
    rows = []
    for (claim, _), comparison in zip(pairs, adjusted_by_paper(pairs), strict=True):
        difference, low, high = in_direction_of_claim(claim, comparison)
        rows.append(
            [
                f"[{claim['text']}]({claim['page']})",
                claim["paper"],
                f"{difference:+.2f} [{low:+.1f}, {high:+.1f}]",
                f"{least_visible(comparison):.1f}",
                str(comparison.seeds),
                f"{comparison.adjusted:.2g}",
                outcome(claim, comparison),
            ]
        )
    enough = [row[-1] for row in rows if FEW_SEEDS not in row[-1]]
    counts = ", ".join(f"{enough.count(word)} {word}" for word in OUTCOMES)
    numeric = HEADER[2:6]
    lines = f"Of {len(enough)} claims with five seeds or more: {counts}."
    return f"{markdown(HEADER, rows, numeric=numeric, marked=True)}\n\n{lines}"


def main() -> None:
    """Write the page, or check it."""
    page = HOME / "README.md"
    text = page.read_text(encoding="utf-8")
    updated = filled(text, table())
    if "--check" not in sys.argv[1:]:
        page.write_text(updated, encoding="utf-8")
        save_plot(figure(), PICTURE)
    elif updated != text:
        sys.exit(1)


if __name__ == "__main__":
    main()
